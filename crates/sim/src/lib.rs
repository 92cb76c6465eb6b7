//! World 1: networks in simulated time.
