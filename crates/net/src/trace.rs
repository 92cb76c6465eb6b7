//! Packet-delivery traces in mahimahi's format.
