//! The two ends of a flow over real sockets.
