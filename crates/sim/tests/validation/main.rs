//! The simulator compared with the outside world: published figures, models and another simulator.
//! `docs/validation.md` lists every figure with ours and the difference.

mod ascent;
mod bbr;
mod behaviour;
mod cells;
mod cellular;
mod check;
mod classic;
mod delay_based;
mod ecn;
mod fluid;
mod networks;
mod ns3;
mod pcc;
mod reordering;
mod routers;
mod rtc;
mod sawtooth;
mod scenarios;
mod series;
mod transport;
mod watch;
mod watching;
