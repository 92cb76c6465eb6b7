//! The four controllers that there are programs of.

use headway_cc::Param;
use headway_cc::schemes::bbr;
use headway_policy::{ActionSpec, AgentSpec, BaseSpec, Effect};

use crate::error::{Error, Result};

/// A controller that there is a program of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Controller {
    /// The window in congestion avoidance, over Cubic.
    #[value(name = "headway_owl")]
    Owl,
    /// The window in every state.
    #[value(name = "headway_window")]
    Window,
    /// The pacing rate.
    #[value(name = "headway_rate")]
    Rate,
    /// BBR's windows.
    #[value(name = "headway_bbr")]
    Bbr,
}

impl Controller {
    /// Every one that there is.
    pub const ALL: [Controller; 4] = [
        Controller::Owl,
        Controller::Window,
        Controller::Rate,
        Controller::Bbr,
    ];

    /// Its name in the kernel, unless another is asked for; its program's file and map are called
    /// the same.
    pub fn name(self) -> &'static str {
        match self {
            Controller::Owl => "headway_owl",
            Controller::Window => "headway_window",
            Controller::Rate => "headway_rate",
            Controller::Bbr => "headway_bbr",
        }
    }

    /// Compiled; CO-RE fits it to the running kernel.
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

    /// The oldest Linux that has what it needs: writes to the pacing rate, or `cong_control` with
    /// four arguments.
    pub fn oldest_kernel(self) -> (u32, u32) {
        match self {
            Controller::Owl | Controller::Rate => (6, 1),
            Controller::Window | Controller::Bbr => (6, 10),
        }
    }

    /// What may be set of it.
    pub fn tunables(self) -> &'static [Param] {
        match self {
            Controller::Bbr => &bbr::TUNABLES,
            _ => &[],
        }
    }

    /// The one that carries out what an agent decides, unless another is asked for; a learner has
    /// the window in each state.
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

    /// That it can carry out what an agent decides.
    ///
    /// # Errors
    /// One line.
    pub fn check(self, policy: &str, agent: Option<&AgentSpec>) -> Result<()> {
        let natural = Controller::of(agent);
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
