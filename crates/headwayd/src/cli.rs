//! The command line.

mod args;
mod kept;

use std::cell::RefCell;
use std::env;
use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd};
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use clap::Parser;
use clap::error::ErrorKind;

use self::args::{At, Cli, Command, LogFormat, Run, asks_for_state, check};
use self::kept::{Pinned, place, unload, with_kept};
use crate::agent::{Agent, AgentOptions, Policies, SavedStates, Shadow, Store, gradients, serve};
use crate::control::{self, AgentCommand, Mailbox, Reloads, Socket};
use crate::error::{Error, Result};
use crate::network;
use crate::programs::listeners::warning;
use crate::programs::{Controller, Listeners, Options, Program};
use crate::system::cgroup::Cgroup;
use crate::system::clock;
use crate::system::default_controller::DefaultController;
use crate::system::signals::Signals;
use crate::system::{capabilities, logs, priority};

const UNIT: &str = include_str!("../systemd/headwayd.service");
const USUAL_PATH: &str = "/usr/local/bin/headwayd";

const NO_COMMAND: ErrorKind = ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;

/// Clap's message in one line, without the usage at its end.
fn one_line(error: &str) -> String {
    let said = error.split("\n\nUsage:").next().unwrap_or(error);
    let said = said.split("\n\nFor more").next().unwrap_or(said);
    let words: Vec<&str> = said.split_whitespace().collect();
    words.join(" ").trim_start_matches("error: ").to_owned()
}

/// Runs the command line.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        // Prints the help or the version, and the help if there is no command.
        Err(error) if !error.use_stderr() || error.kind() == NO_COMMAND => error.exit(),
        Err(error) => {
            complain(&one_line(&error.to_string()));
            return ExitCode::from(2);
        }
    };
    let done = match cli.command {
        Command::Run(run) => run_agent(&run),
        Command::Status { at, kept, json } => control::ask(&at.socket, "status")
            .map_err(|error| with_kept(error, &kept.folder()))
            .and_then(|status| match json {
                true => say(&format!("{status}\n")),
                false => say(&control::table(&status)),
            }),
        Command::Unload { at, kept, name } => unload(&at, &kept.folder(), name.as_deref()),
        Command::Set { at, flow, settings } => {
            let words = format!("set {flow} {}", settings.join(" "));
            control::ask(&at.socket, &words)
                .and_then(|answer| say(&format!("flows: {}\n", answer["flows"])))
        }
        Command::SystemdUnit => unit().and_then(|unit| say(&unit)),
        Command::Reload { at } => control::ask(&at.socket, "reload").map(|_| ()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&error.to_string());
            ExitCode::from(error.exit_code())
        }
    }
}

/// Prints a text. A reader that has closed the pipe is no error.
fn say(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        said => said.map_err(|e| Error::failed("standard output", e)),
    }
}

/// Prints an error. A closed or full standard error is ignored, and one that is not read.
fn complain(what: &str) {
    if logs::finish() {
        let _ = writeln!(io::stderr(), "headwayd: {what}");
    }
}

/// The unit for systemd, with the path of this program in place of the usual one.
fn unit() -> Result<String> {
    let own =
        env::current_exe().map_err(|e| Error::failed("cannot find the path of this program", e))?;
    let own = own.to_string_lossy();
    // These characters have a meaning in a unit (systemd.service(5)).
    if own.contains(|c: char| c.is_whitespace() || "%$\"'\\;".contains(c)) {
        return Err(Error::Failed(format!(
            "{own}: a path in a unit must have no spaces, quotes, '\\', ';', '%' or '$'; install headwayd elsewhere"
        )));
    }
    Ok(UNIT.replace(USUAL_PATH, &own))
}

fn run_agent(run: &Run) -> Result<()> {
    logs::start(matches!(run.log, LogFormat::Json));
    // Errors have libbpf's message in their line. Its other output is for debugging.
    libbpf_rs::set_print(Some((libbpf_rs::PrintLevel::Debug, |_, said| {
        tracing::debug!("{}", said.trim_end())
    })));
    let signals = Signals::new()?;
    check(run)?;
    let stdin = io::stdin();
    let until = run.until_stdin_closes.then(|| stdin.as_fd());
    match run.no_agent {
        true => register(run, &signals, until),
        false => serve_flows(run, &signals, until),
    }
}

/// Registers controllers without an agent.
fn register(run: &Run, signals: &Signals, until: Option<BorrowedFd<'_>>) -> Result<()> {
    let controllers = match run.controllers[..] {
        [] => &Controller::ALL[..],
        _ => &run.controllers[..],
    };
    let load = |controller: &Controller| {
        let pinned = place(run, name_of(run, *controller))?;
        let mut program = load(run, *controller, None, &pinned)?;
        program.register().map(|()| program)
    };
    let programs: Vec<Program> = controllers.iter().map(load).collect::<Result<_>>()?;
    let _attachment = Attachment::make(run, &programs[0].name)?;
    let names = programs
        .iter()
        .map(|program| serde_json::json!({ "name": program.name }));
    say_ready(names.collect());
    signals.wait(until)
}

fn serve_flows(run: &Run, signals: &Signals, until: Option<BorrowedFd<'_>>) -> Result<()> {
    clock::check()?;
    let (controller, policies) = chosen(run)?;
    let socket = Socket::bind(&run.at.socket)?;
    let metrics = run.metrics.map(listen).transpose()?;
    let network = network(run)?;
    let mut pinned = place(run, name_of(run, controller))?;
    let mut program = load(run, controller, policies.as_ref(), &pinned)?;
    let file = run.shadow.as_ref().and_then(Option::as_deref);
    let file = file.map(Shadow::create).transpose()?;
    let mut store = Store::new(run.state.clone()).learning_from(run.learn_from.clone());
    if let Some(policies) = policies.as_ref().filter(|policies| policies.learn()) {
        // The later rights of the process suffice for this.
        store.claim()?;
        if let Some(folder) = &run.state {
            store.take(SavedStates::read(folder, policies));
        }
    }

    let (mailbox, sender) = Mailbox::new()?;
    let listener = socket.listener()?;
    // A start that fails before this line changes nothing.
    pinned.make_room(&program)?;
    program.register()?;
    let ready = match &policies {
        Some(policies) => policies.describe(&program.name),
        None => serde_json::json!({ "name": program.name }),
    };
    let listeners = listeners(&program);
    let attachment = Attachment::make(run, &program.name)?;
    // Threads have the rights that are left now.
    logs::write_by_thread()?;
    let gradients = gradients::start(run.learners)?;
    if let Some(source) = network {
        let hears = sender.clone();
        priority::spawn("netwatch", move || {
            source.listen(|news| drop(hears.ask(AgentCommand::Hear(news))));
        })?;
    }
    let asks = sender.clone();
    let reloads = Arc::new(Reloads::new(
        policies.clone(),
        run.state.clone(),
        sender.clone(),
    ));
    let reload = by_signal(Arc::clone(&reloads))?;
    priority::spawn("control", move || {
        control::serve_socket(&listener, &asks, &reloads, listeners.as_ref());
    })?;
    if let Some(listener) = metrics {
        priority::spawn("metrics", move || {
            control::serve_metrics(&listener, &sender)
        })?;
    }
    let shadow = run.shadow.is_some().then(|| Shadow::into(file));
    let shadow = shadow.transpose()?;
    let name = program.name.clone();
    // The agent serves flows from here on.
    pinned.keep(&mut program)?;
    if program.is_adopted() {
        configure(run, &mut program, policies.as_ref())?;
    }
    let options = agent_options(run, program.flows());
    let agent = Agent::new(
        program,
        policies,
        shadow,
        store,
        options,
        run.learners,
        clock::now(),
    )
    .learning_on(gradients);
    let agent = Rc::new(RefCell::new(agent));
    // Lines of the start come before that it is ready.
    logs::finish();
    say_ready(vec![ready]);
    let served = serve(&agent, &mailbox, signals, until, run.busy_poll, reload);
    // Flows get no answers any more, and saving may take a while.
    drop(attachment);
    agent.borrow_mut().save();
    pinned.say_end(&name);
    logs::finish();
    served
}

/// Returns a function that starts a reload in a thread of its own. A reload that is asked for
/// during another one follows it.
fn by_signal(reloads: Arc<Reloads>) -> Result<impl Fn()> {
    let (asks, asked) = sync_channel(1);
    priority::spawn("reload", move || {
        for () in asked {
            if let Err(error) = reloads.next() {
                tracing::error!(%error, "the reload failed: the agent keeps its current policies");
            }
        }
    })?;
    Ok(move || {
        let _ = asks.try_send(());
    })
}

fn name_of(run: &Run, controller: Controller) -> &str {
    run.name.as_deref().unwrap_or(controller.name())
}

/// Finds the listening sockets that keep the controller of an ended agent, and logs them. If that
/// is not possible, the agent serves all the same.
fn listeners(program: &Program) -> Option<Listeners> {
    let found = (program.listeners()).and_then(|looks| looks.find().map(|found| (looks, found)));
    match found {
        Ok((looks, found)) => {
            for address in found {
                tracing::warn!("{}", warning(&address.to_string(), &program.name));
            }
            Some(looks)
        }
        Err(error) => {
            tracing::info!(%error, "listening sockets that keep the controller of an ended agent cannot be found");
            None
        }
    }
}

/// The measurement agent of `--netwatch`, if that option is given.
fn network(run: &Run) -> Result<Option<network::Source>> {
    let (token, authority) = (
        run.netwatch_token.as_deref(),
        run.netwatch_authority.as_deref(),
    );
    let source = |url: &String| network::Source::new(url, token, authority);
    run.netwatch.as_ref().map(source).transpose()
}

/// The controller and the policies. There are no policies if a tuner sets BBR's windows.
fn chosen(run: &Run) -> Result<(Controller, Option<Policies>)> {
    let wrong = |text: &str| Err(Error::Usage(text.to_owned()));
    if run.policy.is_empty() {
        let [Controller::Bbr] = run.controllers[..] else {
            return wrong(
                "--policy is missing; only --controllers headway_bbr, given alone, needs none (headwayd set sets its parameters)",
            );
        };
        let learns = asks_for_state(run) || !run.learn_from.is_empty();
        if run.shadow.is_some() || run.require_range || learns {
            return wrong(
                "--shadow, --require-range, --state and --learn-from need a policy; give --policy, or leave them out",
            );
        }
        return Ok((Controller::Bbr, None));
    }
    let policies = Policies::read(run.policy.iter().map(String::as_str))?;
    let controller = match run.controllers[..] {
        [] => policies.controller(),
        [one] => one,
        _ => return wrong("--controllers: a policy has one controller; give one"),
    };
    policies.check(controller, agent_options(run, run.flows))?;
    if !run.learn_from.is_empty() && !policies.learn() {
        return wrong(
            "--learn-from names the users from whose flows a policy learns, and no policy given here learns; leave it out",
        );
    }
    if asks_for_state(run) && !policies.learn() {
        return wrong(
            "--state keeps what a policy learns in use, and no policy given here learns; give owl:online=true, or leave --state out",
        );
    }
    Ok((controller, Some(policies)))
}

/// What uses the controller from now on: the system as its default, or a cgroup. It is undone when
/// dropped.
struct Attachment {
    _default: Option<DefaultController>,
    _cgroup: Option<Cgroup>,
}

impl Attachment {
    /// Attaches the controller, and gives up the rights that the agent does not need from now on.
    fn make(run: &Run, name: &str) -> Result<Attachment> {
        let default = (run.default).then(|| DefaultController::set(name, &run.at.default()));
        let cgroup = run
            .cgroup
            .as_deref()
            .map(|folder| Cgroup::attach(folder, name));
        let attachment = Attachment {
            _default: default.transpose()?,
            _cgroup: cgroup.transpose()?,
        };
        capabilities::drop_all_others(run.default)?;
        Ok(attachment)
    }
}

fn load(
    run: &Run,
    controller: Controller,
    policies: Option<&Policies>,
    pinned: &Pinned,
) -> Result<Program> {
    let options = Options {
        name: name_of(run, controller),
        flows: run.flows,
        ring_bytes: run.ring * 1024,
        has_agent: !run.no_agent,
        is_kept: matches!(pinned, Pinned::At { .. }),
    };
    if let Some(program) = pinned.adopted(controller, options) {
        // It keeps the settings of the earlier agent, because this one may yet fail to start.
        return Ok(program);
    }
    let mut program = Program::load(controller, options)?;
    configure(run, &mut program, policies)?;
    Ok(program)
}

fn configure(run: &Run, program: &mut Program, policies: Option<&Policies>) -> Result<()> {
    let options = agent_options(run, program.flows());
    match policies {
        Some(policies) => policies.configure(program, options),
        None => program.configure(options.without_policy(), None),
    }
}

/// The options for a program that serves `flows` at once. An adopted program may serve fewer than
/// `--flows`, or more.
fn agent_options(run: &Run, flows: u32) -> AgentOptions {
    AgentOptions {
        report_interval_us: run.report_interval,
        is_shadow: run.shadow.is_some(),
        is_written_down: matches!(run.shadow, Some(Some(_))),
        requires_range: run.require_range,
        flows_of_user: Some(share(flows as usize, run.user_share) as u32),
        learners_of_user: Some(share(run.learners, run.user_share)),
        serves_loopback: run.loopback,
    }
}

/// This percentage of a number, at least one.
fn share(of: usize, percent: u8) -> usize {
    (of * usize::from(percent) / 100).max(1)
}

fn say_ready(controllers: Vec<serde_json::Value>) {
    let ready = serde_json::json!({ "event": "ready", "controllers": controllers });
    // The agent serves even if nothing reads this line.
    if let Err(error) = say(&format!("{ready}\n")) {
        tracing::warn!(%error, "the line that says that headwayd is ready cannot be printed");
    }
}

fn listen(address: SocketAddr) -> Result<TcpListener> {
    if !address.ip().is_loopback() {
        return Err(Error::Usage(format!(
            "--metrics {address}: only an address of loopback is served, such as 127.0.0.1:9464; for other machines put a proxy with authentication in front"
        )));
    }
    TcpListener::bind(address).map_err(|e| Error::Usage(format!("--metrics {address}: {e}")))
}

#[cfg(test)]
mod tests;
