//! Queue disciplines.

mod abc;
mod backlog;
mod codel;
mod drop_head;
mod drop_tail;
mod fq_codel;
mod pie;
mod red;
mod step;
mod xcp;

use std::fmt::Debug;

use headway_cc::{Bytes, Router, Stream, Time};

use crate::Packet;
use crate::server::Server;

pub use abc::AbcParams;
pub use backlog::{Limits, Waiting};
pub use codel::CoDelParams;
pub use drop_tail::DropTail;
pub use fq_codel::FqCodelParams;
pub use pie::{PieDelay, PieParams, PieTuning};
pub use red::RedParams;
pub use step::StepParams;
pub use xcp::XcpParams;

/// A queue discipline: decides what waits, what is dropped or marked, and what goes next.
///
/// Every packet says in [`Packet::arrived`] when it arrived here.
pub trait Queue: Debug + Send {
    /// A packet arrives. Packets dropped for it go to `dropped`.
    fn enqueue(&mut self, now: Time, packet: Packet, dropped: &mut Vec<Packet>);
    /// Takes the packet to send next. Packets dropped on the way go to `dropped`. `None` means that
    /// nothing waits any more: otherwise a server would stop although packets wait.
    fn dequeue(&mut self, now: Time, dropped: &mut Vec<Packet>) -> Option<Packet>;
    /// Sets the server of this queue from now on. Routers that must know the link's capacity keep a
    /// copy of it.
    fn serve_by(&mut self, _server: &Server) {}
    /// How much waits.
    fn waiting(&self) -> Waiting;
    /// Packets waiting.
    fn len(&self) -> usize {
        self.waiting().packets
    }
    /// Is the queue empty?
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Bytes waiting.
    fn bytes(&self) -> Bytes {
        Bytes::new(self.waiting().bytes)
    }
}

/// A discipline, with its parameters.
#[derive(Clone, Debug, PartialEq)]
pub enum Discipline {
    /// FIFO; a full queue drops arrivals.
    DropTail,
    /// FIFO; a full queue drops its oldest packets.
    DropHead,
    /// CoDel (RFC 8289).
    CoDel(CoDelParams),
    /// PIE (RFC 8033).
    Pie(PieParams),
    /// Random Early Detection (Floyd and Jacobson 1993).
    Red(RedParams),
    /// Marking above a threshold (DCTCP's switch).
    Step(StepParams),
    /// FQ-CoDel (RFC 8290).
    FqCodel(FqCodelParams),
    /// ABC's router (Goyal et al. 2020).
    Abc(AbcParams),
    /// XCP's router (Katabi et al. 2002).
    Xcp(XcpParams),
}

impl From<Router> for Discipline {
    /// The router with its default parameters.
    fn from(router: Router) -> Discipline {
        match router {
            Router::Abc => Discipline::Abc(AbcParams::default()),
            Router::Xcp => Discipline::Xcp(XcpParams::default()),
            Router::XcpWindowed => Discipline::Xcp(XcpParams {
                windowed: true,
                ..XcpParams::default()
            }),
        }
    }
}

impl Discipline {
    /// The router, if the discipline is one.
    pub fn router(&self) -> Option<Router> {
        match self {
            Discipline::Abc(_) => Some(Router::Abc),
            Discipline::Xcp(XcpParams { windowed: true, .. }) => Some(Router::XcpWindowed),
            Discipline::Xcp(_) => Some(Router::Xcp),
            _ => None,
        }
    }

    /// An empty queue with these `limits`. Each packet counts `overhead` bytes more than its size;
    /// disciplines that draw random numbers take them from `stream`.
    pub fn build(&self, limits: Limits, overhead: u32, stream: Stream) -> Box<dyn Queue> {
        match *self {
            Discipline::DropTail => Box::new(DropTail::new(limits).with_overhead(overhead)),
            Discipline::DropHead => Box::new(drop_head::DropHead::new(limits, overhead)),
            Discipline::CoDel(params) => Box::new(codel::CoDel::new(params, limits, overhead)),
            Discipline::Pie(params) => Box::new(pie::Pie::new(params, limits, overhead, stream)),
            Discipline::Red(params) => Box::new(red::Red::new(params, limits, overhead, stream)),
            Discipline::Step(params) => Box::new(step::Step::new(params, limits, overhead)),
            Discipline::FqCodel(params) => {
                Box::new(fq_codel::FqCodel::new(params, limits, overhead, stream))
            }
            Discipline::Abc(params) => Box::new(abc::Abc::new(params, limits, overhead)),
            Discipline::Xcp(params) => Box::new(xcp::Xcp::new(params, limits, overhead)),
        }
    }
}

#[cfg(test)]
mod testing {
    //! Packets for the disciplines' tests.

    use headway_cc::{Duration, Ecn, Header, Time};

    use crate::{Body, Packet, Segment};

    /// Packet `number` of a flow, which arrives at time zero.
    pub(super) fn packet(flow: u32, number: u64, size: u16) -> Packet {
        Packet {
            flow,
            size,
            hops_left: 0,
            ecn: Ecn::NotEct,
            arrived: Time::ZERO,
            body: Body::Data(Segment {
                number,
                seq: number,
                sent: Time::ZERO,
                queued: Duration::ZERO,
                header: Header::default(),
            }),
        }
    }

    pub(super) fn ecns(packets: &[Packet]) -> Vec<Ecn> {
        packets.iter().map(|p| p.ecn).collect()
    }
}
