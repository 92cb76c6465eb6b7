//! The options, and which of them fit together.

use std::env;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use headway_kernel::abi;

use super::kept::Kept;
use crate::error::{Error, Result};
use crate::programs::{Controller, Program};
use crate::system::cgroup::Cgroup;

const SOCKET: &str = "/run/headway/headwayd.sock";
const STATE: &str = "STATE_DIRECTORY";
const FLOWS: u32 = 4096;
const RING_KIB: u32 = 4096;
const LEARNERS: usize = 64;
const USER_SHARE: u8 = 50;

/// Learned congestion control for the sockets of a stock kernel.
#[derive(Debug, Parser)]
#[command(
    version,
    name = "headwayd",
    after_help = "\
Example, as root:
  headwayd run --policy owl         serves flows until Ctrl-C
  iperf3 -C headway_owl -c HOST     sends a flow that Owl controls; any program can choose headway_owl
  headwayd status                   prints the flows, and what controls each
  headwayd unload                   removes the controller, once the agent has ended

Options of a command: headwayd COMMAND --help"
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Register controllers in the kernel and serve the flows that choose them.
    #[command(after_help = "\
Examples:
  headwayd run --policy owl                 Flows choose it: iperf3 -C headway_owl -c HOST, or any program's
                                            setsockopt(TCP_CONGESTION), or a route:
                                            ip route change 192.0.2.0/24 via 10.0.0.1 congctl headway_owl
  headwayd run --policy owl --shadow owl.jsonl --default
                                            Cubic controls all flows; a file says what Owl would have done
  headwayd run --policy owl --policy 10.0.0.0/8=owl-loss --cgroup /sys/fs/cgroup/system.slice/backup.service")]
    Run(Box<Run>),
    /// Print what the agent does: flows, windows, RTTs, rates, the guard.
    #[command(
        after_help = "Example:\n  headwayd status --json | jq '.flows[] | select(.guard == \"cubic\")'"
    )]
    Status {
        #[command(flatten)]
        at: At,
        #[command(flatten)]
        kept: Kept,
        /// Print one JSON object on standard output.
        #[arg(long)]
        json: bool,
    },
    /// Set BBR's windows in one flow, or in all, while they run (headwayd run --controllers
    /// headway_bbr).
    #[command(after_help = "Example:\n  headwayd set all btlbw_window=4 rtprop_window=2s")]
    Set {
        #[command(flatten)]
        at: At,
        /// A flow's number, as headwayd status prints it, or 'all'.
        flow: String,
        /// btlbw_window is a number of rounds, rtprop_window a time.
        #[arg(required = true, value_name = "NAME=VALUE")]
        settings: Vec<String>,
    },
    /// Unregister the controllers that ended agents have left, and remove everything that those
    /// agents have pinned.
    #[command(
        after_help = "Example, as root:\n  systemctl stop headwayd && headwayd unload\n\nFlows keep the program that they have, and Cubic controls them (BBR, for headway_bbr)."
    )]
    Unload {
        #[command(flatten)]
        at: At,
        #[command(flatten)]
        kept: Kept,
        /// Unload only the controller of this name in the kernel.
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
    },
    /// Print a unit for systemd that runs this program from where it is installed.
    #[command(
        after_help = "Example, as root:\n  headwayd systemd-unit > /etc/systemd/system/headwayd.service"
    )]
    SystemdUnit,
    /// Have the agent read its policies again; no flow is interrupted.
    #[command(after_help = "Example:\n  cp -r new-model/. /etc/headway/model && headwayd reload")]
    Reload {
        #[command(flatten)]
        at: At,
    },
}

#[derive(Debug, Args)]
pub struct At {
    /// The agent's control socket.
    #[arg(long, env = "HEADWAYD_SOCKET", default_value = SOCKET, value_name = "PATH")]
    pub socket: PathBuf,
}

impl At {
    /// The file with the name of the controller that was the default before.
    pub fn default(&self) -> PathBuf {
        self.socket.with_extension("default")
    }
}

#[derive(Debug, Args)]
pub struct Run {
    /// A learned scheme, as `headway bench --schemes` takes it: owl, owl:online=true,
    /// learned:model=DIR. For destinations of a prefix: 10.0.0.0/8=owl-loss.
    #[arg(
        long,
        value_name = "[PREFIX=]SPEC",
        required_unless_present_any = ["no_agent", "controllers"]
    )]
    pub policy: Vec<String>,
    /// The controller that carries out answers. Default: the one that fits the policy.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "NAME,...")]
    pub controllers: Vec<Controller>,
    /// The controller's name in the kernel, at most 15 characters. Default: its program's name.
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Register the controllers and serve no flows; Cubic controls them (BBR, for headway_bbr).
    #[arg(long, conflicts_with = "policy")]
    pub no_agent: bool,
    /// Let Cubic control all flows, and write what the policy would have done to a file: a line of
    /// JSON for each decision. Without a file the policy is asked, and nothing is written.
    #[arg(long, value_name = "FILE", num_args = 0..=1)]
    pub shadow: Option<Option<PathBuf>>,
    /// Let Cubic control flows whose paths are outside the training range of their model (headway
    /// models show NAME).
    #[arg(long)]
    pub require_range: bool,
    /// Make the controller the system's default until the agent ends.
    #[arg(long)]
    pub default: bool,
    /// Set the controller for new connections of this cgroup.
    #[arg(long, value_name = "FOLDER")]
    pub cgroup: Option<PathBuf>,
    /// Serve flows from an address to itself, such as 127.0.0.1, too.
    #[arg(long)]
    pub loopback: bool,
    /// How many flows are served at once; the base controller serves the others.
    #[arg(long, default_value_t = FLOWS, value_parser = clap::value_parser!(u32).range(1..=i64::from(abi::FLOWS)))]
    pub flows: u32,
    /// Send at most one record of a flow in this time, in microseconds; a request is sent at once.
    /// Default: one record for each acknowledgement.
    #[arg(long, value_name = "US", value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    pub report_interval: Option<u32>,
    /// Room for messages that have not been read, in KiB: a power of two.
    #[arg(long, default_value_t = RING_KIB, value_name = "KIB", value_parser = clap::value_parser!(u32).range(4..=1_048_576))]
    pub ring: u32,
    /// Poll without sleeping: lower latency, and one CPU is always busy.
    #[arg(long)]
    pub busy_poll: bool,
    /// Folder that keeps what policies learn in use (owl:online=true).
    #[arg(long, env = STATE, value_name = "FOLDER")]
    pub state: Option<PathBuf>,
    /// The numbers of the users whose flows change the saved state of --state; without it flows of
    /// all users do. Flows of others may start from it.
    #[arg(
        long,
        value_name = "UID,...",
        value_delimiter = ',',
        requires = "state"
    )]
    pub learn_from: Vec<u32>,
    /// How many flows learn at once. Further flows run the model as it was trained; without a model
    /// (rax) Cubic controls them.
    #[arg(long, default_value_t = LEARNERS, value_name = "FLOWS")]
    pub learners: usize,
    /// The largest share of --flows, and of --learners, that one user's flows may take. Root's
    /// flows may take all.
    #[arg(long, default_value_t = USER_SHARE, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(1..=100))]
    pub user_share: u8,
    /// Receive congestion and availability of paths from headway netwatch: http://127.0.0.1:PORT,
    /// or https beyond this machine.
    #[arg(long, value_name = "URL")]
    pub netwatch: Option<String>,
    /// A file with the agent's token for netwatch.
    #[arg(long, value_name = "FILE", requires = "netwatch")]
    pub netwatch_token: Option<PathBuf>,
    /// The certificate of the authority that signed netwatch's certificate, in PEM. Default: the
    /// public authorities.
    #[arg(long, value_name = "FILE", requires = "netwatch")]
    pub netwatch_authority: Option<PathBuf>,
    #[command(flatten)]
    pub at: At,
    #[command(flatten)]
    pub kept: Kept,
    /// Unregister the controller when the agent ends, and leave nothing behind.
    #[arg(long)]
    pub no_keep: bool,
    /// Serve metrics for Prometheus at this loopback address.
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, default_missing_value = "127.0.0.1:9464")]
    pub metrics: Option<SocketAddr>,
    /// Format of the logs on standard error. RUST_LOG=warn leaves out lines below a warning.
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    pub log: LogFormat,
    /// End when standard input closes, and leave nothing behind unless --keep is given. This is for
    /// programs that start headwayd.
    #[arg(long)]
    pub until_stdin_closes: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum LogFormat {
    Text,
    Json,
}

/// Checks that the options fit together.
///
/// # Errors
/// One line, if they do not.
pub fn check(run: &Run) -> Result<()> {
    let wrong = |text: String| Err(Error::Usage(text));
    if let Some(name) = &run.name {
        let fits = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
        if name.is_empty() || name.len() > Program::LONGEST_NAME || !name.chars().all(fits) {
            return wrong(format!(
                "--name '{}' must be 1 to {} letters, digits, '_', '-' or '.'",
                name.escape_debug(),
                Program::LONGEST_NAME
            ));
        }
        if run.no_agent && run.controllers.len() > 1 {
            return wrong("--name is for one controller; give one of --controllers".to_owned());
        }
    }
    if run.no_agent {
        let for_agents = [
            ("--shadow", run.shadow.is_some()),
            ("--report-interval", run.report_interval.is_some()),
            ("--require-range", run.require_range),
            ("--busy-poll", run.busy_poll),
            ("--state", asks_for_state(run)),
            ("--learn-from", !run.learn_from.is_empty()),
            ("--metrics", run.metrics.is_some()),
            ("--flows", run.flows != FLOWS),
            ("--ring", run.ring != RING_KIB),
            ("--learners", run.learners != LEARNERS),
            ("--user-share", run.user_share != USER_SHARE),
            ("--loopback", run.loopback),
        ];
        let given = for_agents.iter().filter(|(_, is_given)| *is_given);
        let given: Vec<&str> = given.map(|(option, _)| *option).collect();
        if !given.is_empty() {
            return wrong(format!(
                "--no-agent serves no flows; remove {}",
                given.join(", ")
            ));
        }
    }
    if let Some(folder) = &run.cgroup {
        Cgroup::check(folder)?;
    }
    if !run.ring.is_power_of_two() {
        return wrong(format!("--ring {} must be a power of two", run.ring));
    }
    if let Some(folder) = run.state.as_ref().filter(|folder| !folder.is_dir()) {
        return wrong(format!(
            "--state {} must be an existing folder",
            folder.display()
        ));
    }
    Ok(())
}

/// Does the command line give --state? systemd sets the environment variable for every unit, so
/// that alone does not count.
pub fn asks_for_state(run: &Run) -> bool {
    let of_unit = env::var_os(STATE);
    (run.state.as_ref()).is_some_and(|folder| of_unit.is_none_or(|other| other != *folder))
}
