//! The four controllers, each of which is a BPF program.

use headway_cc::Param;
use headway_cc::schemes::bbr;
use headway_policy::{ActionSpec, AgentSpec, BaseSpec, Effect};

use crate::error::{Error, Result};

/// A controller, which is a BPF program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Controller {
    /// The policy sets the window in congestion avoidance, over Cubic.
    #[value(name = "headway_owl")]
    Owl,
    /// The policy sets the window in every state.
    #[value(name = "headway_window")]
    Window,
    /// The policy sets the pacing rate.
    #[value(name = "headway_rate")]
    Rate,
    /// The policy sets BBR's windows.
    #[value(name = "headway_bbr")]
    Bbr,
}

impl Controller {
    /// All controllers.
    pub const ALL: [Controller; 4] = [
        Controller::Owl,
        Controller::Window,
        Controller::Rate,
        Controller::Bbr,
    ];

    /// Its name in the kernel, unless an option gives another. Its program's file and map have this
    /// name too.
    pub fn name(self) -> &'static str {
        match self {
            Controller::Owl => "headway_owl",
            Controller::Window => "headway_window",
            Controller::Rate => "headway_rate",
            Controller::Bbr => "headway_bbr",
        }
    }

    /// Its compiled program, which CO-RE fits to the running kernel.
    pub fn object(self) -> &'static [u8] {
        match self {
            Controller::Owl => {
                include_bytes!("../../../kernel/bpf/objects/headway_owl.bpf.o")
            }
            Controller::Window => {
                include_bytes!("../../../kernel/bpf/objects/headway_window.bpf.o")
            }
            Controller::Rate => {
                include_bytes!("../../../kernel/bpf/objects/headway_rate.bpf.o")
            }
            Controller::Bbr => {
                include_bytes!("../../../kernel/bpf/objects/headway_bbr.bpf.o")
            }
        }
    }

    /// The oldest Linux that permits what the program needs: writes to the pacing rate, or
    /// `cong_control` with four arguments.
    pub fn oldest_kernel(self) -> (u32, u32) {
        match self {
            Controller::Owl | Controller::Rate => (6, 1),
            Controller::Window | Controller::Bbr => (6, 10),
        }
    }

    /// The parameters that may be set while it runs.
    pub fn tunables(self) -> &'static [Param] {
        match self {
            Controller::Bbr => &bbr::TUNABLES,
            _ => &[],
        }
    }

    /// The controller that carries out what an agent decides, unless an option names another. A
    /// learner without an agent sets the window in every state.
    pub fn of(agent: Option<&AgentSpec>) -> Controller {
        let Some(agent) = agent else {
            return Controller::Window;
        };
        match (&agent.base, &agent.action) {
            (BaseSpec::Rate { .. }, _) => Controller::Rate,
            (_, ActionSpec::Settings { .. })
            | (
                _,
                ActionSpec::Discrete {
                    effect: Effect::Set { .. },
                    ..
                },
            ) => Controller::Bbr,
            (BaseSpec::Scheme { .. }, _) => Controller::Owl,
        }
    }

    /// Checks that it can carry out what an agent decides.
    ///
    /// # Errors
    /// One line, if it cannot.
    pub fn check(self, policy: &str, agent: Option<&AgentSpec>) -> Result<()> {
        let natural = Controller::of(agent);
        if let (Controller::Bbr, Some(BaseSpec::Scheme { name, .. })) =
            (natural, agent.map(|agent| &agent.base))
            && name != bbr::SCHEME.name
        {
            return Err(Error::Usage(format!(
                "'{policy}' sets parameters of {name}; in the kernel a policy can set those of {}",
                bbr::SCHEME.name
            )));
        }
        let steers_window = [Controller::Owl, Controller::Window];
        if self == natural
            || (agent.is_some()
                && steers_window.contains(&self)
                && steers_window.contains(&natural))
        {
            return Ok(());
        }
        Err(Error::Usage(format!(
            "{} cannot carry out what '{policy}' decides; {} can",
            self.name(),
            natural.name()
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `headway_bbr` has no parameter `beta`: it would drop such settings without a word.
    #[test]
    fn parameters_of_another_scheme_are_refused_in_one_line() {
        let spec = |scheme: &str, parameter: &str, value: f64| -> AgentSpec {
            toml::from_str(&format!(
                r#"
                clock = {{ kind = "period", ms = 1000.0 }}
                base = {{ kind = "scheme", name = "{scheme}" }}
                action = {{ kind = "settings", parameters = ["{parameter}"], choices = [[{value}]] }}
                observation = {{ history = 1, features = [{{ name = "rtt_ms" }}] }}
                "#
            ))
            .expect("a spec")
        };
        let bbr = spec("bbr", "btlbw_window", 4.0);
        assert!(Controller::Bbr.check("tuner", Some(&bbr)).is_ok());
        let cubic = spec("cubic", "beta", 0.5);
        let error = Controller::Bbr
            .check("tuner", Some(&cubic))
            .expect_err("refused");
        assert_eq!(
            error.to_string(),
            "'tuner' sets parameters of cubic; in the kernel a policy can set those of bbr"
        );
    }
}
