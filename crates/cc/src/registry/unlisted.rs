//! Schemes that no registry lists, for environments and tests.

use std::sync::Arc;

use super::values::Value;
use super::{Family, Kind, Loaded, Need, Param, Scheme, Selection, Setup, Values};
use crate::CongestionControl;

/// Builds the controller of one flow.
type Build = dyn Fn(&Setup) -> Box<dyn CongestionControl> + Send + Sync;

/// A [`Build`] as the content of a parameter.
struct Builder(Box<Build>);

const BUILDER: Param = Param {
    name: "builder",
    help: "builds the controller of each flow",
    kind: Kind::Loaded {
        what: "given by the host",
        default: None,
        load: |_| Err("it cannot be written; the host gives it".to_owned()),
    },
};

impl Scheme {
    /// A scheme without an entry in a registry. Only [`built_by`](Self::built_by) builds it.
    pub const fn unlisted(name: &'static str, needs: &'static [Need]) -> Scheme {
        Scheme {
            name,
            family: Family::Learned,
            summary: "",
            source: "",
            deviations: &[],
            needs,
            params: &[BUILDER],
            build: |setup, values| (values.loaded::<Builder>(&BUILDER).0)(setup),
            receiver: None,
            router: None,
        }
    }

    /// This [unlisted](Self::unlisted) scheme with a function that builds the controller of each
    /// flow.
    pub fn built_by(
        &'static self,
        build: impl Fn(&Setup) -> Box<dyn CongestionControl> + Send + Sync + 'static,
    ) -> Selection {
        let builder = Loaded {
            id: self.name.to_owned(),
            content: Arc::new(Builder(Box::new(build))),
        };
        Selection {
            spec: self.name.to_owned(),
            scheme: self,
            values: Values(vec![(&BUILDER, Value::Loaded(builder))]),
            digests: None,
        }
    }
}
