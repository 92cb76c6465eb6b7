//! The four controllers that there are programs of.

use headway_cc::Param;
use headway_cc::schemes::bbr;
use headway_policy::{ActionSpec, AgentSpec, BeneathSpec, Effect};

use crate::error::{Error, Result};

/// A controller that there is a program of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum Controller {
    /// The window in congestion avoidance, over Cubic.
    HeadwayOwl,
    /// The window in every state.
    HeadwayWindow,
    /// The pacing rate.
    HeadwayRate,
    /// BBR's windows.
    HeadwayBbr,
}

impl Controller {
    pub const ALL: [Controller; 4] = [
        Controller::HeadwayOwl,
        Controller::HeadwayWindow,
        Controller::HeadwayRate,
        Controller::HeadwayBbr,
    ];

    /// Its name in the kernel, unless another is asked for; its program's file and map are called the same.
    pub fn name(self) -> &'static str {
        match self {
            Controller::HeadwayOwl => "headway_owl",
            Controller::HeadwayWindow => "headway_window",
            Controller::HeadwayRate => "headway_rate",
            Controller::HeadwayBbr => "headway_bbr",
        }
    }

    /// Compiled; CO-RE fits it to the running kernel.
    pub fn object(self) -> &'static [u8] {
        match self {
            Controller::HeadwayOwl => {
                include_bytes!("../../../kernel/bpf/objects/headway_owl.bpf.o")
            }
            Controller::HeadwayWindow => {
                include_bytes!("../../../kernel/bpf/objects/headway_window.bpf.o")
            }
            Controller::HeadwayRate => {
                include_bytes!("../../../kernel/bpf/objects/headway_rate.bpf.o")
            }
            Controller::HeadwayBbr => {
                include_bytes!("../../../kernel/bpf/objects/headway_bbr.bpf.o")
            }
        }
    }

    /// The oldest Linux that has what it needs: writes to the pacing rate, or `cong_control` with four arguments.
    pub fn oldest_kernel(self) -> (u32, u32) {
        match self {
            Controller::HeadwayOwl | Controller::HeadwayRate => (6, 1),
            Controller::HeadwayWindow | Controller::HeadwayBbr => (6, 10),
        }
    }

    /// What may be set of it.
    pub fn tunables(self) -> &'static [Param] {
        match self {
            Controller::HeadwayBbr => &bbr::TUNABLES,
            _ => &[],
        }
    }

    /// The one that carries out what an agent decides, unless another is asked for.
    pub fn of(agent: &AgentSpec) -> Controller {
        match (&agent.beneath, &agent.action) {
            (BeneathSpec::Rate { .. }, _) => Controller::HeadwayRate,
            (_, ActionSpec::Settings { .. })
            | (
                _,
                ActionSpec::Discrete {
                    effect: Effect::Set { .. },
                    ..
                },
            ) => Controller::HeadwayBbr,
            (BeneathSpec::Scheme { .. }, _) => Controller::HeadwayOwl,
        }
    }

    /// That it can carry out what an agent decides.
    ///
    /// # Errors
    /// One line.
    pub fn check(self, policy: &str, agent: &AgentSpec) -> Result<()> {
        let natural = Controller::of(agent);
        let steers_window = [Controller::HeadwayOwl, Controller::HeadwayWindow];
        if self == natural || (steers_window.contains(&self) && steers_window.contains(&natural)) {
            return Ok(());
        }
        Err(Error::Usage(format!(
            "{} cannot carry out what '{policy}' decides; {} can",
            self.name(),
            natural.name()
        )))
    }
}
