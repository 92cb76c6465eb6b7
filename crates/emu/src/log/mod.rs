//! What happens on emulated links, written down while it happens.
