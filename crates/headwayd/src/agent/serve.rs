//! The agent's loop: one thread, which sleeps until a flow, a clock or somebody asks.

use std::cell::RefCell;
use std::hint::spin_loop;
use std::os::fd::BorrowedFd;
use std::rc::Rc;

use headway_cc::Duration;
use libbpf_rs::{RingBuffer, RingBufferBuilder};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::prctl::set_timerslack;
use nix::sys::time::TimeSpec;

use super::Agent;
use super::wait::Wait;
use crate::control::{AgentCommand, Mailbox};
use crate::error::{Error, Result};
use crate::programs::Program;
use crate::system::{clock, signals::Signals};

/// Serves until a signal ends it, or standard input closes where that is to end it. A signal may
/// ask for a reload, which is another thread's work.
///
/// # Errors
/// One line, if the kernel fails it.
pub fn serve(
    agent: &Rc<RefCell<Agent<Program>>>,
    mailbox: &Mailbox,
    signals: &Signals,
    until: Option<BorrowedFd<'_>>,
    is_busy: bool,
    reload: impl Fn(),
) -> Result<()> {
    // Else the kernel may let each wait last 50 us longer.
    set_timerslack(1).map_err(|e| Error::failed("cannot have exact timers", e))?;
    let ring = ring(agent)?;
    let fds = [ring_fd(&ring), mailbox.as_fd(), signals.as_fd()];
    let readable = |fd| PollFd::new(fd, PollFlags::POLLIN);
    let mut waits: Vec<PollFd<'_>> = fds.into_iter().chain(until).map(readable).collect();
    let mut is_awake = false;
    loop {
        // Not at each look: each flow that sends a message reads this.
        if !is_awake {
            agent.borrow().set_awake(true);
            is_awake = true;
        }
        let mut wait = look(agent, &ring)?;
        if matches!(wait, Wait::Sleep(_)) && !is_busy {
            // Who has asked meanwhile has woken nobody: it looks once more before it sleeps.
            agent.borrow().set_awake(false);
            is_awake = false;
            wait = look(agent, &ring)?;
        }
        let time = match wait {
            _ if is_busy => Duration::ZERO,
            Wait::Look => {
                spin_loop();
                continue;
            }
            Wait::Nap(time) | Wait::Sleep(time) => time.min(LONGEST_WAIT),
        };
        match ppoll(
            &mut waits,
            Some(TimeSpec::new(0, time.as_nanos() as i64)),
            None,
        ) {
            Ok(0) | Err(Errno::EINTR) => continue,
            Ok(_) => {}
            Err(e) => return Err(Error::failed("cannot wait", e)),
        }
        // New policies bring new settings, which do not say so.
        is_awake = false;
        let is_ready = |wait: &PollFd<'_>| wait.any().unwrap_or(true);
        if is_ready(&waits[1]) {
            mailbox.answer(|command| fulfil(agent, command));
        }
        if is_ready(&waits[2]) && signals.read(&reload) {
            return Ok(());
        }
        if waits.get(3).is_some_and(is_ready) {
            return Ok(());
        }
    }
}

fn ring(agent: &Rc<RefCell<Agent<Program>>>) -> Result<RingBuffer<'static>> {
    let failed = |e| Error::failed("cannot read the programs' messages", e);
    let borrowed = agent.borrow();
    let maps: Vec<_> = borrowed.programs.iter().map(|p| p.messages()).collect();
    let mut builder = RingBufferBuilder::new();
    for (program, map) in maps.iter().enumerate() {
        let agent = Rc::clone(agent);
        let callback = move |bytes: &[u8]| {
            agent.borrow_mut().on_message(program, bytes);
            0
        };
        builder.add(*map, callback).map_err(failed)?;
    }
    builder.build().map_err(failed)
}

/// Serves what there is now; how to wait for more.
fn look(agent: &RefCell<Agent<Program>>, ring: &RingBuffer<'_>) -> Result<Wait> {
    let read = ring.consume_raw_n(MOST_MESSAGES);
    let Ok(read) = usize::try_from(read) else {
        let why = Errno::from_raw(-read);
        return Err(Error::failed("cannot read the programs' messages", why));
    };
    let wait = agent.borrow_mut().on_timers(clock::now());
    Ok(match read < MOST_MESSAGES {
        true => wait,
        false => Wait::Nap(Duration::ZERO),
    })
}

#[allow(unsafe_code, reason = "libbpf-rs gives a number")]
fn ring_fd<'a>(ring: &'a RingBuffer<'_>) -> BorrowedFd<'a> {
    // SAFETY: open as long as the ring is.
    unsafe { BorrowedFd::borrow_raw(ring.epoll_fd()) }
}

/// Read in one turn: messages may come faster than they are read, and clocks, signals and the
/// mailbox have their turn. So many take less than a millisecond, beside the time that each user
/// has of the turn.
const MOST_MESSAGES: usize = 4096;
/// Messages that wake nobody are read at least so often: a policy inside the kernel asks nothing.
const LONGEST_WAIT: Duration = Duration::from_millis(100);

fn fulfil(agent: &RefCell<Agent<Program>>, command: AgentCommand) -> serde_json::Value {
    match command {
        AgentCommand::Summary => agent.borrow().summary(clock::now()),
        AgentCommand::Flows(from) => {
            let (flows, next) = agent.borrow().page(from, clock::now());
            serde_json::json!({ "flows": flows, "next": next })
        }
        AgentCommand::Counters => agent.borrow().counters(clock::now()),
        AgentCommand::Set(number, settings) => match agent.borrow_mut().set(number, &settings) {
            Ok(flows) => serde_json::json!({ "flows": flows }),
            Err(error) => serde_json::json!({ "error": error.to_string() }),
        },
        AgentCommand::Hear(news) => {
            agent.borrow_mut().on_network(news);
            serde_json::Value::Null
        }
        AgentCommand::Take(policies) => match agent.borrow_mut().take_policies(policies) {
            Ok(()) => serde_json::json!({}),
            Err(error) => serde_json::json!({ "error": error.to_string() }),
        },
        AgentCommand::Renew(from) => serde_json::json!({ "next": agent.borrow_mut().renew(from) }),
    }
}
