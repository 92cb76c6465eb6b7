//! What carries a flow: the kernel's TCP, or our transport over UDP.

use std::env;
use std::path::PathBuf;

use headway_cc::{Registry, SchemeError, Selection, suggest};
use serde::{Deserialize, Serialize};

use super::kernel;

/// What carries a flow: the kernel's TCP under one of its controllers, or our transport over UDP.
#[derive(Clone, Debug)]
pub enum Driver {
    /// The kernel's controller of that name.
    Kernel(String),
    /// A controller that a daemon has given the kernel for a learned scheme.
    Agent(AgentDriver),
    /// A scheme of the registry.
    Udp(Selection),
}

/// A learned scheme that a daemon serves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentDriver {
    /// The scheme, as it was written.
    pub scheme: String,
    /// The name of its controller in the kernel.
    pub controller: String,
    /// The trained model that decides.
    pub model: String,
    /// The daemon's control socket.
    pub socket: PathBuf,
}

/// Schemes that the kernel has too, and their names there.
const OF_KERNEL: [(&str, &str); 3] = [("newreno", "reno"), ("cubic", "cubic"), ("bbr", "bbr")];
const KERNEL: &str = "kernel-";
const UDP: &str = "udp-";
/// The environment variable with the control socket of a `headwayd` that the user has started.
const DAEMON: &str = "HEADWAYD_SOCKET";

impl Driver {
    /// Reads a scheme as world `emu` names it. `newreno`, `cubic` and `bbr` are the kernel's reno,
    /// cubic and bbr; `kernel-NAME` is any controller that the kernel has. `udp-NAME`, every other
    /// name of the registry, and any scheme with parameters run over our own transport.
    ///
    /// # Errors
    /// [`SchemeError`], for a name that neither has, a malformed one, and wrong parameters.
    pub fn parse(spec: &str, registry: &Registry) -> Result<Driver, SchemeError> {
        if let Some(name) = spec.strip_prefix(KERNEL) {
            if name.contains(':') {
                let why = "the kernel's controllers take no parameters";
                return Err(SchemeError(format!("scheme '{spec}': {why}")));
            }
            kernel::require(name)?;
            return Ok(Driver::Kernel(name.to_owned()));
        }
        if let Some((_, name)) = OF_KERNEL.iter().find(|(ours, _)| *ours == spec) {
            kernel::require(name)?;
            return Ok(Driver::Kernel((*name).to_owned()));
        }
        let ours = spec.strip_prefix(UDP).unwrap_or(spec);
        let scheme = ours.strip_prefix(Registry::BATCHED).unwrap_or(ours);
        let name = scheme.split(':').next().unwrap_or_default();
        if registry.find(name).is_none() {
            return Err(unknown(spec, name, registry));
        }
        let selection = Selection {
            spec: spec.to_owned(),
            ..registry.select(ours)?
        };
        Ok(Driver::Udp(selection))
    }

    /// Does this scheme run in the kernel, on this machine or on another?
    pub fn is_kernels(name: &str) -> bool {
        OF_KERNEL.iter().any(|(ours, _)| *ours == name)
    }

    /// Does a spec name our own transport?
    pub fn names_udp(spec: &str) -> bool {
        spec.starts_with(UDP)
    }

    /// The trained model that decides, if there is one.
    pub fn model(&self) -> Option<&str> {
        match self {
            Driver::Kernel(_) => None,
            Driver::Agent(agent) => Some(&agent.model),
            Driver::Udp(selection) => selection.model(),
        }
    }

    /// The kernel's controller, if the kernel carries the flow.
    pub fn controller(&self) -> Option<&str> {
        match self {
            Driver::Kernel(name) => Some(name),
            Driver::Agent(agent) => Some(&agent.controller),
            Driver::Udp(_) => None,
        }
    }

    /// The control socket of the daemon that may know more about the flow than its socket shows.
    /// For a learned scheme, it is the daemon that serves it. For another controller that is not
    /// one of Linux's own, it is the daemon that the environment names.
    pub fn daemon(&self) -> Option<PathBuf> {
        match self {
            Driver::Kernel(name) if OF_KERNEL.iter().all(|(_, kernels)| kernels != name) => {
                let named = env::var_os(DAEMON).filter(|path| !path.is_empty());
                named.map(PathBuf::from)
            }
            Driver::Agent(agent) => Some(agent.socket.clone()),
            Driver::Kernel(_) | Driver::Udp(_) => None,
        }
    }

    /// The name of its transport, for messages and tables.
    pub fn transport(&self) -> &'static str {
        match self.controller() {
            Some(_) => "tcp",
            None => "udp",
        }
    }
}

/// The error for a name that the registry lacks. It says whether the kernel has it.
fn unknown(spec: &str, name: &str, registry: &Registry) -> SchemeError {
    let available = kernel::available();
    let hint = match available.iter().find(|kernels| *kernels == spec) {
        Some(kernels) => format!("the kernel's is '{KERNEL}{kernels}'"),
        None => suggest(name, registry.iter().map(|s| s.name)),
    };
    SchemeError(format!("unknown scheme '{}'; {hint}", spec.escape_debug()))
}

#[cfg(test)]
mod tests {
    use headway_cc::schemes;

    use super::*;

    fn parse(spec: &str) -> Result<Driver, String> {
        Driver::parse(spec, &Registry::new(schemes::SCHEMES)).map_err(|e| e.to_string())
    }

    #[test]
    fn scheme_name_selects_the_transport() {
        for spec in [
            "udp-cubic",
            "udp-cubic:hystart=none",
            "cubic:hystart=none",
            "copa",
            "batched-cubic:interval=10ms",
        ] {
            match parse(spec) {
                Ok(Driver::Udp(selection)) => assert_eq!(selection.spec, spec),
                other => panic!("{spec}: {other:?}"),
            }
        }
        // Every Linux has these two.
        for (spec, name) in [
            ("cubic", "cubic"),
            ("newreno", "reno"),
            ("kernel-reno", "reno"),
        ] {
            match parse(spec) {
                Ok(Driver::Kernel(kernels)) => assert_eq!(kernels, name),
                other => panic!("{spec}: {other:?}"),
            }
        }
    }

    #[test]
    fn wrong_schemes_are_refused_in_one_line() {
        for (spec, hint) in [
            ("cubik", "unknown scheme 'cubik'; did you mean 'cubic'?"),
            (
                "udp-copo",
                "unknown scheme 'udp-copo'; did you mean 'copa'?",
            ),
            (
                "reno",
                "unknown scheme 'reno'; the kernel's is 'kernel-reno'",
            ),
            ("udp-cubic:x=1", "scheme 'cubic' has no parameter 'x'"),
            (
                "kernel-renno",
                "the kernel has no congestion control 'renno'; did you mean 'reno'?",
            ),
            (
                "kernel-cubic:beta=1",
                "the kernel's controllers take no parameters",
            ),
            ("kernel-", "the kernel has no congestion control ''"),
            ("", "unknown scheme ''"),
        ] {
            let error = parse(spec).expect_err(spec);
            assert!(error.contains(hint), "{spec}: {error}");
            assert!(!error.contains('\n'), "{spec}");
        }
    }
}
