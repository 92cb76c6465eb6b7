//! What carries the flows of a world.

use headway_cc::{Registry, World};
use headway_world::{RunError, SetupError};
use serde::{Deserialize, Serialize};

use super::{EMU, KERNEL};
use crate::host::{AgentDriver, Driver};

/// What carries the flows of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Hosting {
    /// World `emu`: the kernel's TCP under its own controllers, and our transport over UDP for all
    /// other schemes.
    Emu,
    /// World `kernel`: the kernel's TCP alone. These daemons serve learned schemes.
    Kernel(Vec<AgentDriver>),
}

impl Hosting {
    pub fn world(&self) -> World {
        match self {
            Hosting::Emu => EMU,
            Hosting::Kernel(_) => KERNEL,
        }
    }

    /// What carries a flow under `scheme`.
    ///
    /// # Errors
    /// [`RunError`] for an unknown scheme, and for one that this world cannot run.
    pub fn driver(&self, scheme: &str, registry: &Registry) -> Result<Driver, RunError> {
        let agents = match self {
            Hosting::Emu => &[],
            Hosting::Kernel(agents) => agents.as_slice(),
        };
        if let Some(agent) = agents.iter().find(|a| a.scheme == scheme) {
            return Ok(Driver::Agent(agent.clone()));
        }
        let driver = Driver::parse(scheme, registry).map_err(SetupError::from)?;
        match (self, &driver) {
            (Hosting::Kernel(_), Driver::Udp(_)) => Err(elsewhere(scheme).into()),
            _ => Ok(driver),
        }
    }
}

/// The error that the world `kernel` cannot run a scheme. It says which worlds can.
fn elsewhere(scheme: &str) -> SetupError {
    // The simulator does not know schemes named `udp-NAME`.
    let worlds = match Driver::names_udp(scheme) {
        true => "the world 'emu'",
        false => "the worlds 'sim' and 'emu'",
    };
    SetupError::Unserved {
        scheme: scheme.to_owned(),
        why: format!(
            "it runs in {worlds}; in 'kernel' every flow is the kernel's TCP, under newreno, cubic, bbr, \
             kernel-NAME or a learned scheme"
        ),
    }
}

#[cfg(test)]
mod tests {
    use headway_cc::schemes;

    use super::*;

    fn registry() -> Registry {
        let mut registry = Registry::new(schemes::SCHEMES);
        registry.add(headway_policy::schemes::SCHEMES);
        registry
    }

    /// `owl` as a daemon serves it.
    fn owl() -> AgentDriver {
        AgentDriver {
            scheme: "owl:online=true".to_owned(),
            controller: "hw_7_0".to_owned(),
            model: "owl-v1@0123456789ab".to_owned(),
            socket: "/run/owl".into(),
        }
    }

    #[test]
    fn kernel_world_carries_every_flow_over_kernel_tcp() {
        let (world, registry) = (Hosting::Kernel(vec![owl()]), registry());
        // Every Linux has these two.
        for (scheme, controller, model) in [
            ("newreno", "reno", None),
            ("cubic", "cubic", None),
            ("kernel-reno", "reno", None),
            ("owl:online=true", "hw_7_0", Some("owl-v1@0123456789ab")),
        ] {
            let driver = world.driver(scheme, &registry).expect(scheme);
            assert_eq!(driver.controller(), Some(controller));
            assert_eq!(driver.model(), model);
            assert_eq!(driver.transport(), "tcp");
        }
    }

    #[test]
    fn kernel_world_names_the_worlds_of_a_refused_scheme() {
        let (world, registry) = (Hosting::Kernel(vec![owl()]), registry());
        for (scheme, worlds) in [
            ("copa", "it runs in the worlds 'sim' and 'emu'; in 'kernel'"),
            ("cubic:hystart=none", "the worlds 'sim' and 'emu'"),
            ("batched-cubic:interval=10ms", "the worlds 'sim' and 'emu'"),
            ("udp-cubic", "it runs in the world 'emu'; in 'kernel'"),
            // No daemon serves this one: the daemon's scheme has another parameter.
            (
                "owl",
                "under newreno, cubic, bbr, kernel-NAME or a learned scheme",
            ),
        ] {
            let error = world.driver(scheme, &registry).expect_err(scheme);
            let text = error.to_string();
            assert!(text.starts_with(&format!("scheme '{scheme}': ")), "{text}");
            assert!(text.contains(worlds), "{text}");
            assert!(!text.contains('\n'), "{text}");
            // With --schemes all, such a scheme is left out.
            assert!(error.unserved().is_some(), "{scheme}");
        }
        let unknown = world.driver("cubik", &registry).unwrap_err();
        assert!(unknown.to_string().contains("did you mean 'cubic'?"));
        assert_eq!(unknown.unserved(), None);
    }

    /// The parent tells its worker which daemon serves which scheme.
    #[test]
    fn hosting_survives_json() {
        for hosting in [Hosting::Emu, Hosting::Kernel(vec![owl()])] {
            let text = serde_json::to_string(&hosting).unwrap();
            assert_eq!(serde_json::from_str::<Hosting>(&text).unwrap(), hosting);
        }
    }
}
