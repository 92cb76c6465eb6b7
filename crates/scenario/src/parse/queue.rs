//! Reads a link's queue: a size, or a discipline with its parameters.

use headway_cc::Duration;
use headway_net::queue::{
    AbcParams, CoDelParams, FqCodelParams, PieParams, RedParams, StepParams, XcpParams,
};

use crate::ScenarioError;
use crate::error::quoted;
use crate::quantity::{
    BDP, Dimension, GAIN, PACKETS, PERIOD, PROBABILITY, QUEUES, Quantity, SIZE, TIME, TOKENS,
    split_unit, without_log,
};
use crate::queue::{CoDelPlan, DisciplinePlan, LimitsPlan, QueueBytes, QueuePlan};
use crate::reader::{Item, Table};

const QUEUE_WANTED: &str = "a size such as \"100pkt\", \"150kB\" or \"0.5bdp\", or \"infinite\"";
const BYTES_WANTED: &str = "a size such as \"150kB\" or \"0.5bdp\"";
/// The default limit of RFC 8290 §5.2.1.
const FQ_CODEL_PACKETS: f64 = 10_240.0;

/// The kinds, and the parameters of each besides its limits.
const KINDS: &[(&str, &[&str])] = &[
    ("infinite", &[]),
    ("droptail", &[]),
    ("drophead", &[]),
    ("codel", &["target", "interval", "ecn"]),
    ("pie", &["target", "max_burst", "variant", "ecn"]),
    (
        "red",
        &["min", "max", "weight", "max_probability", "gentle", "ecn"],
    ),
    ("step", &["threshold"]),
    (
        "fq_codel",
        &["flows", "quantum", "target", "interval", "ecn"],
    ),
    (
        "abc",
        &["eta", "delta", "target", "window", "tokens", "observed"],
    ),
    ("xcp", &["alpha", "beta", "gamma"]),
    ("xcp-w", &["alpha", "beta", "gamma"]),
];

/// Reads `"100pkt"`, `"150kB"`, `"0.5bdp"`, `"infinite"`, or a table with a kind, limits and
/// parameters.
pub(super) fn read(item: &Item<'_>, component: &str) -> Result<QueuePlan, ScenarioError> {
    if !item.is_table() {
        let text = item.text(QUEUE_WANTED)?;
        let mut limits = LimitsPlan::default();
        match split_unit(without_log(text).rsplit("..").next().unwrap_or(text).trim()) {
            ("", "infinite") => return Ok(QueuePlan::Infinite),
            (_, "pkt") => limits.packets = Some(item.quantity(&PACKETS, component)?),
            ("", _) => {
                return Err(item.place.error(format!(
                    "{} is not a queue; write {QUEUE_WANTED}",
                    quoted(text)
                )));
            }
            _ => limits.bytes = Some(bytes(item, component)?),
        }
        return Ok(QueuePlan::DropTail(limits));
    }
    // The kind decides which keys are known.
    let words: Vec<_> = KINDS
        .iter()
        .map(|&(kind, keys)| (kind, (kind, keys)))
        .collect();
    let (kind, keys) = item
        .any_table()?
        .require("kind", "\"droptail\"")?
        .word(&words)?;
    let table = item.table(&[&["kind", "packets", "bytes"], keys].concat())?;
    let limits = LimitsPlan {
        packets: table.quantity("packets", &PACKETS, component)?,
        bytes: table
            .get("bytes")
            .map(|item| bytes(&item, &format!("{component}.bytes")))
            .transpose()?,
    };
    let limited = limits.packets.is_some() || limits.bytes.is_some();
    match kind {
        "infinite" if limited => Err(table
            .place
            .error("an infinite queue has no limit; remove it or write kind = \"droptail\"")),
        "infinite" => Ok(QueuePlan::Infinite),
        "droptail" | "drophead" if !limited => Err(table
            .place
            .error("a limit is missing; write for example packets = \"100pkt\"")),
        "droptail" => Ok(QueuePlan::DropTail(limits)),
        "fq_codel" if !limited => Ok(QueuePlan::Managed {
            limits: LimitsPlan {
                packets: Some(Quantity::fixed(FQ_CODEL_PACKETS)),
                bytes: None,
            },
            discipline: Box::new(discipline(kind, &table, component)?),
        }),
        _ => Ok(QueuePlan::Managed {
            limits,
            discipline: Box::new(discipline(kind, &table, component)?),
        }),
    }
}

/// A discipline's parameters: those of the table, or else the defaults of `headway_net`.
fn discipline(
    kind: &str,
    table: &Table<'_>,
    component: &str,
) -> Result<DisciplinePlan, ScenarioError> {
    let time = |key, dimension: &Dimension, default: Duration| {
        let found = table.quantity(key, dimension, component)?;
        Ok(found.unwrap_or(Quantity::fixed(default.as_nanos() as f64)))
    };
    let number = |key: &str, dimension: &Dimension, default: f64| match table.get(key) {
        Some(item) => item.plain(dimension, &format!("{component}.{key}")),
        None => Ok(Quantity::fixed(default)),
    };
    let packets = |key, default| {
        let found = table.quantity(key, &PACKETS, component)?;
        Ok(found.unwrap_or(Quantity::fixed(default)))
    };
    let yes = |key, default| table.get(key).map_or(Ok(default), |item| item.boolean());
    let codel = |default: CoDelParams| {
        Ok(CoDelPlan {
            target: time("target", &PERIOD, default.target)?,
            interval: time("interval", &PERIOD, default.interval)?,
            ecn: yes("ecn", default.ecn)?,
        })
    };
    Ok(match kind {
        "codel" => DisciplinePlan::CoDel(codel(CoDelParams::default())?),
        "pie" => {
            let default = PieParams::default();
            let variants = [("rfc8033", false), ("mahimahi", true)];
            DisciplinePlan::Pie {
                target: time("target", &PERIOD, default.target)?,
                max_burst: time("max_burst", &TIME, default.max_burst)?,
                mahimahi: table
                    .get("variant")
                    .map_or(Ok(false), |item| item.word(&variants))?,
                ecn: yes("ecn", default.ecn)?,
            }
        }
        "red" => {
            let default = RedParams::default();
            let (min, max) = (
                packets("min", default.min_packets)?,
                packets("max", default.max_packets)?,
            );
            if max.low <= min.high {
                return Err(table.place.error(format!(
                    "max ({}pkt) is not over min ({}pkt); write a larger max",
                    max.low, min.high
                )));
            }
            DisciplinePlan::Red {
                min,
                max,
                weight: number("weight", &PROBABILITY, default.weight)?,
                max_probability: number("max_probability", &PROBABILITY, default.max_probability)?,
                gentle: yes("gentle", default.gentle)?,
                ecn: yes("ecn", default.ecn)?,
            }
        }
        "step" => DisciplinePlan::Step {
            threshold: packets("threshold", StepParams::default().threshold_packets as f64)?,
        },
        "fq_codel" => {
            let default = FqCodelParams::default();
            DisciplinePlan::FqCodel {
                flows: number("flows", &QUEUES, f64::from(default.flows))?,
                quantum: table
                    .quantity("quantum", &SIZE, component)?
                    .unwrap_or(Quantity::fixed(default.quantum.as_f64())),
                codel: codel(default.codel)?,
            }
        }
        "abc" => {
            let default = AbcParams::default();
            DisciplinePlan::Abc {
                eta: number("eta", &PROBABILITY, default.eta)?,
                delta: time("delta", &PERIOD, default.delta)?,
                target: time("target", &TIME, default.target)?,
                window: time("window", &PERIOD, default.window)?,
                tokens: number("tokens", &TOKENS, default.tokens)?,
                observed: yes("observed", default.observed)?,
            }
        }
        "xcp" | "xcp-w" => {
            let default = XcpParams::default();
            DisciplinePlan::Xcp {
                alpha: number("alpha", &GAIN, default.alpha)?,
                beta: number("beta", &GAIN, default.beta)?,
                gamma: number("gamma", &GAIN, default.gamma)?,
                windowed: kind == "xcp-w",
            }
        }
        _ => DisciplinePlan::DropHead,
    })
}

fn bytes(item: &Item<'_>, component: &str) -> Result<QueueBytes, ScenarioError> {
    let text = item.text(BYTES_WANTED)?;
    match without_log(text).ends_with("bdp") {
        true => item.quantity(&BDP, component).map(QueueBytes::Bdp),
        false => item.quantity(&SIZE, component).map(QueueBytes::Bytes),
    }
}
