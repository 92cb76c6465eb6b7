//! Tests that judge rates, delays and durations in real time. `make test-live` runs each next to a
//! witness of the machine; the gate runs none of them.

mod hosts;
mod run;
