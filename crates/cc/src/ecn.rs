//! How a loss-based scheme uses ECN, if its user turns it on.

use crate::{Congestion, Ecn, Kind, Param, Stamp, Values};

/// The parameter that such schemes share.
pub const ECN: Param = Param {
    name: "ecn",
    help: "let routers mark packets instead of dropping them; react to a mark as to a loss (RFC 3168) or less (abe, RFC 8511)",
    kind: Kind::Choice(&["off", "on", "abe"]),
};

/// Use of ECN by one flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum EcnUse {
    /// Packets are not ECN-capable.
    #[default]
    Off,
    /// A mark counts as a loss without the repair (RFC 3168 §5).
    Classic,
    /// A mark comes from a short queue, and reduces the window less than a loss (RFC 8511 §3.1).
    Abe,
}

impl EcnUse {
    /// The use that the values of a scheme with the parameter [`ECN`] choose.
    pub fn of(values: &Values) -> EcnUse {
        match values.choice(&ECN) {
            "on" => EcnUse::Classic,
            "abe" => EcnUse::Abe,
            _ => EcnUse::Off,
        }
    }

    /// The stamp of the flow's packets: ECT(0), RFC 3168 §5.
    pub fn stamp(self) -> Stamp {
        let ecn = match self {
            EcnUse::Off => Ecn::NotEct,
            EcnUse::Classic | EcnUse::Abe => Ecn::Ect0,
        };
        Stamp {
            ecn,
            ..Stamp::default()
        }
    }

    /// Does `sign` reduce the window less than a loss would?
    pub fn spares(self, sign: Congestion) -> bool {
        self == EcnUse::Abe && sign == Congestion::Ecn
    }
}
