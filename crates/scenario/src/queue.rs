//! Queues whose ranges are not drawn yet.

use headway_cc::Bytes;
use headway_net::queue::{
    AbcParams, CoDelParams, Discipline, FqCodelParams, PieParams, RedParams, StepParams, XcpParams,
};
use serde::Serialize;

use crate::quantity::Quantity;
use crate::{QueueSpec, RateSpec};

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum QueuePlan {
    Infinite,
    DropTail(LimitsPlan),
    Managed {
        limits: LimitsPlan,
        discipline: Box<DisciplinePlan>,
    },
}

/// The limits of a queue.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct LimitsPlan {
    pub packets: Option<Quantity>,
    pub bytes: Option<QueueBytes>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum QueueBytes {
    Bytes(Quantity),
    Bdp(Quantity),
}

/// A discipline other than drop-tail; parameters are named as in [`Discipline`].
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DisciplinePlan {
    DropHead,
    CoDel(CoDelPlan),
    Pie {
        target: Quantity,
        max_burst: Quantity,
        /// Whether it follows mahimahi instead of RFC 8033.
        mahimahi: bool,
        ecn: bool,
    },
    Red {
        min: Quantity,
        max: Quantity,
        weight: Quantity,
        max_probability: Quantity,
        gentle: bool,
        ecn: bool,
    },
    Step {
        threshold: Quantity,
    },
    FqCodel {
        flows: Quantity,
        quantum: Quantity,
        codel: CoDelPlan,
    },
    Abc {
        eta: Quantity,
        delta: Quantity,
        target: Quantity,
        window: Quantity,
        tokens: Quantity,
        observed: bool,
    },
    Xcp {
        alpha: Quantity,
        beta: Quantity,
        gamma: Quantity,
        windowed: bool,
    },
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct CoDelPlan {
    pub target: Quantity,
    pub interval: Quantity,
    pub ecn: bool,
}

impl QueuePlan {
    fn limits(&self) -> Option<&LimitsPlan> {
        match self {
            QueuePlan::Infinite => None,
            QueuePlan::DropTail(limits) | QueuePlan::Managed { limits, .. } => Some(limits),
        }
    }

    /// The limit in BDP, if it is written so.
    pub fn bdp(&self) -> Option<&Quantity> {
        match self.limits()?.bytes.as_ref()? {
            QueueBytes::Bdp(q) => Some(q),
            QueueBytes::Bytes(_) => None,
        }
    }

    pub fn quantities(&self) -> Vec<&Quantity> {
        let mut all = Vec::new();
        if let Some(LimitsPlan { packets, bytes }) = self.limits() {
            all.extend(packets);
            all.extend(
                bytes
                    .as_ref()
                    .map(|(QueueBytes::Bytes(q) | QueueBytes::Bdp(q))| q),
            );
        }
        if let QueuePlan::Managed { discipline, .. } = self {
            match &**discipline {
                DisciplinePlan::DropHead => {}
                DisciplinePlan::CoDel(codel) => all.extend([&codel.target, &codel.interval]),
                DisciplinePlan::Pie {
                    target, max_burst, ..
                } => all.extend([target, max_burst]),
                DisciplinePlan::Red {
                    min,
                    max,
                    weight,
                    max_probability,
                    ..
                } => all.extend([min, max, weight, max_probability]),
                DisciplinePlan::Step { threshold } => all.push(threshold),
                DisciplinePlan::FqCodel {
                    flows,
                    quantum,
                    codel,
                } => all.extend([flows, quantum, &codel.target, &codel.interval]),
                DisciplinePlan::Abc {
                    eta,
                    delta,
                    target,
                    window,
                    tokens,
                    ..
                } => all.extend([eta, delta, target, window, tokens]),
                DisciplinePlan::Xcp {
                    alpha, beta, gamma, ..
                } => all.extend([alpha, beta, gamma]),
            }
        }
        all
    }

    /// The kind of router, if it is one.
    pub fn router(&self) -> Option<&'static str> {
        match self {
            QueuePlan::Managed { discipline, .. } => match &**discipline {
                DisciplinePlan::Abc { .. } => Some("abc"),
                DisciplinePlan::Xcp { windowed, .. } => {
                    Some(if *windowed { "xcp-w" } else { "xcp" })
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// Does its behaviour depend on the seed?
    pub fn draws(&self) -> bool {
        match self {
            QueuePlan::Infinite | QueuePlan::DropTail(_) => false,
            QueuePlan::Managed { discipline, .. } => match &**discipline {
                // FQ-CoDel salts its hash, so the flows that share a queue differ.
                DisciplinePlan::Pie { .. }
                | DisciplinePlan::Red { .. }
                | DisciplinePlan::FqCodel { .. } => true,
                DisciplinePlan::DropHead
                | DisciplinePlan::CoDel(_)
                | DisciplinePlan::Step { .. }
                | DisciplinePlan::Abc { .. }
                | DisciplinePlan::Xcp { .. } => false,
            },
        }
    }

    /// Draws the queue, but leaves limits in BDP open. `rate` is the link's, and packets have
    /// `packet_size`.
    pub fn draw(&self, seed: u64, rate: &RateSpec, packet_size: Bytes) -> QueueSpec {
        let limits = self.limits();
        QueueSpec {
            discipline: match self {
                QueuePlan::Infinite | QueuePlan::DropTail(_) => Discipline::DropTail,
                QueuePlan::Managed { discipline, .. } => discipline.draw(seed, rate, packet_size),
            },
            packets: limits
                .and_then(|l| l.packets.as_ref())
                .map(|q| q.draw_whole(seed)),
            bytes: match limits.and_then(|l| l.bytes.as_ref()) {
                Some(QueueBytes::Bytes(q)) => Some(Bytes::new(q.draw_whole(seed))),
                Some(QueueBytes::Bdp(_)) | None => None,
            },
        }
    }
}

impl DisciplinePlan {
    fn draw(&self, seed: u64, rate: &RateSpec, packet_size: Bytes) -> Discipline {
        match self {
            DisciplinePlan::DropHead => Discipline::DropHead,
            DisciplinePlan::CoDel(codel) => Discipline::CoDel(CoDelParams {
                mtu: packet_size,
                ..codel.draw(seed)
            }),
            DisciplinePlan::Pie {
                target,
                max_burst,
                mahimahi,
                ecn,
            } => {
                let (target, max_burst) = (target.duration(seed), max_burst.duration(seed));
                let params = match mahimahi {
                    true => PieParams::mahimahi(target, max_burst),
                    false => PieParams {
                        target,
                        max_burst,
                        ..PieParams::default()
                    },
                };
                Discipline::Pie(PieParams {
                    ecn: *ecn,
                    ..params
                })
            }
            DisciplinePlan::Red {
                min,
                max,
                weight,
                max_probability,
                gentle,
                ecn,
            } => Discipline::Red(RedParams {
                min_packets: min.draw_whole(seed) as f64,
                max_packets: max.draw_whole(seed) as f64,
                weight: weight.draw(seed),
                max_probability: max_probability.draw(seed),
                gentle: *gentle,
                ecn: *ecn,
                packet_time: match rate {
                    RateSpec::Fixed(rate) => rate.time_to_send(packet_size),
                    // A trace has no rate of its own: the default is that of 1500 bytes at 12
                    // Mbit/s.
                    _ => RedParams::default().packet_time,
                },
            }),
            DisciplinePlan::Step { threshold } => Discipline::Step(StepParams {
                threshold_packets: threshold.draw_whole(seed),
            }),
            DisciplinePlan::FqCodel {
                flows,
                quantum,
                codel,
            } => Discipline::FqCodel(FqCodelParams {
                // The schema's limit fits a u16.
                flows: flows.draw_whole(seed) as u16,
                quantum: Bytes::new(quantum.draw_whole(seed)),
                codel: CoDelParams {
                    mtu: packet_size,
                    ..codel.draw(seed)
                },
                ..FqCodelParams::default()
            }),
            DisciplinePlan::Abc {
                eta,
                delta,
                target,
                window,
                tokens,
                observed,
            } => Discipline::Abc(AbcParams {
                eta: eta.draw(seed),
                delta: delta.duration(seed),
                target: target.duration(seed),
                window: window.duration(seed),
                tokens: tokens.draw(seed),
                observed: *observed,
            }),
            DisciplinePlan::Xcp {
                alpha,
                beta,
                gamma,
                windowed,
            } => Discipline::Xcp(XcpParams {
                alpha: alpha.draw(seed),
                beta: beta.draw(seed),
                gamma: gamma.draw(seed),
                windowed: *windowed,
            }),
        }
    }
}

impl CoDelPlan {
    fn draw(&self, seed: u64) -> CoDelParams {
        CoDelParams {
            target: self.target.duration(seed),
            interval: self.interval.duration(seed),
            ecn: self.ecn,
            ..CoDelParams::default()
        }
    }
}
