//! The agent's loop: one thread, which sleeps until a flow, a clock or somebody asks.

use std::cell::RefCell;
use std::os::fd::BorrowedFd;
use std::rc::Rc;

use headway_cc::{Duration, Time};
use libbpf_rs::{RingBuffer, RingBufferBuilder};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;

use super::Agent;
use crate::control::{Mailbox, Wish};
use crate::error::{Error, Result};
use crate::system::{clock, signals::Signals};

/// Serves until a signal ends it, or standard input closes where that is to end it.
///
/// # Errors
/// One line, if the kernel fails it.
pub fn serve(
    agent: &Rc<RefCell<Agent>>,
    mailbox: &Mailbox,
    signals: &Signals,
    until: Option<BorrowedFd<'_>>,
    is_busy: bool,
) -> Result<()> {
    let ring = ring(agent)?;
    let ring_fd = ring_fd(&ring);
    loop {
        agent.borrow().set_awake(true);
        drain(&ring)?;
        agent.borrow_mut().on_timers(clock::now());
        if !is_busy {
            // Who has asked meanwhile has woken nobody: it looks once more before it sleeps.
            agent.borrow().set_awake(false);
        }
        drain(&ring)?;
        let next = agent.borrow_mut().on_timers(clock::now());
        let mut waits = vec![
            PollFd::new(ring_fd, PollFlags::POLLIN),
            PollFd::new(mailbox.as_fd(), PollFlags::POLLIN),
            PollFd::new(signals.as_fd(), PollFlags::POLLIN),
        ];
        waits.extend(until.map(|fd| PollFd::new(fd, PollFlags::POLLIN)));
        match ppoll(&mut waits, Some(wait(next, is_busy)), None) {
            Ok(0) | Err(Errno::EINTR) => continue,
            Ok(_) => {}
            Err(e) => return Err(Error::failed("cannot wait", e)),
        }
        let is_ready = |wait: &PollFd<'_>| wait.any().unwrap_or(true);
        if is_ready(&waits[1]) {
            mailbox.answer(|wish| fulfil(agent, wish));
        }
        if is_ready(&waits[2]) && signals.read(|| reload(agent)) {
            return Ok(());
        }
        if waits.get(3).is_some_and(is_ready) {
            return Ok(());
        }
    }
}

fn ring(agent: &Rc<RefCell<Agent>>) -> Result<RingBuffer<'static>> {
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
        builder.add(map, callback).map_err(failed)?;
    }
    builder.build().map_err(failed)
}

fn drain(ring: &RingBuffer<'_>) -> Result<()> {
    ring.consume()
        .map_err(|e| Error::failed("cannot read the programs' messages", e))
}

#[allow(unsafe_code, reason = "libbpf-rs gives a number")]
fn ring_fd<'a>(ring: &'a RingBuffer<'_>) -> BorrowedFd<'a> {
    // SAFETY: open as long as the ring is.
    unsafe { BorrowedFd::borrow_raw(ring.epoll_fd()) }
}

/// Messages that wake nobody are read at least so often: a policy inside the kernel asks nothing.
const LONGEST_WAIT: Duration = Duration::from_millis(100);

/// How long to wait at most.
fn wait(next: Time, is_busy: bool) -> TimeSpec {
    let wait = match is_busy {
        true => Duration::ZERO,
        false => next.since(clock::now()).min(LONGEST_WAIT),
    };
    TimeSpec::new(0, wait.as_nanos() as i64)
}

fn fulfil(agent: &RefCell<Agent>, wish: Wish) -> serde_json::Value {
    match wish {
        Wish::Status => agent.borrow().status(),
        Wish::Set(number, settings) => match agent.borrow_mut().set(number, &settings) {
            Ok(flows) => serde_json::json!({ "flows": flows }),
            Err(error) => serde_json::json!({ "error": error.to_string() }),
        },
        Wish::Reload => match reload(agent) {
            Ok(()) => agent.borrow().status(),
            Err(error) => serde_json::json!({ "error": error.to_string() }),
        },
    }
}

fn reload(agent: &RefCell<Agent>) -> Result<()> {
    let policies = agent.borrow().read_policies_anew()?;
    agent.borrow_mut().reload(policies)?;
    tracing::info!("policies read anew");
    Ok(())
}
