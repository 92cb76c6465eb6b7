//! Tests that judge rates, delays and durations in real time: `make test-live` runs each beside a
//! witness of the machine, and the gate runs none of them.

mod hosts;
mod run;
