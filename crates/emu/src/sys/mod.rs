//! System calls: the only place that needs `unsafe`.

mod child;
mod clock;
mod cpu;
mod namespace;
mod socket;
mod tun;
mod user;
mod waiter;

pub use child::confine;
pub use clock::Clock;
pub use cpu::{cpu_time, real_time, stay_awake};
pub use namespace::{Namespace, SetupError, set};
pub use socket::{
    BbrInfo, TcpInfo, bbr_info, clamp_window, leave_out_checksums, limit_receive_window, tcp_info,
};
pub use tun::{Datagram, Tun, TunCounters};
pub use user::{Privilege, become_able};
pub use waiter::Waiter;
