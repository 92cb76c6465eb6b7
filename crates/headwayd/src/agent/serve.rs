//! The agent's loop, in one thread, which sleeps until a flow, a clock or a client needs it.

use std::cell::RefCell;
use std::hint::spin_loop;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;

use libbpf_rs::{RingBuffer, RingBufferBuilder};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::prctl::set_timerslack;
use nix::sys::time::TimeSpec;

use super::wait::Wait;
use super::{Agent, turn};
use crate::control::{AgentCommand, Mailbox};
use crate::error::{Error, Result};
use crate::programs::Program;
use crate::system::{clock, signals::Signals};

/// Serves until a signal ends it, or `until` closes. A signal may start a reload, which is another
/// thread's work.
///
/// # Errors
/// One line, if a call to the kernel fails.
pub fn serve(
    agent: &Rc<RefCell<Agent<Program>>>,
    mailbox: &Mailbox,
    signals: &Signals,
    until: Option<BorrowedFd<'_>>,
    is_busy: bool,
    reload: impl Fn(),
) -> Result<()> {
    // By default the kernel may make each wait 50 us longer.
    set_timerslack(1).map_err(|e| Error::failed("cannot set the timer slack", e))?;
    let ring = ring(agent)?;
    let map = message_map(agent)?;
    let others = [mailbox.as_fd(), signals.as_fd()].into_iter().chain(until);
    let mut sources = Sources::new(others, map.as_fd());
    if is_busy {
        agent.borrow_mut().poll_busily();
    }
    loop {
        let wait = turn(agent, |most| read(&ring, most))?;
        if wait == Wait::Look {
            spin_loop();
            continue;
        }
        if !sources.wait(wait)? {
            continue;
        }
        if sources.is_ready(0) {
            mailbox.answer(|command| fulfil(agent, command));
        }
        if sources.is_ready(1) && signals.read(&reload) {
            return Ok(());
        }
        if sources.is_ready(2) {
            return Ok(());
        }
    }
}

/// The descriptors that may end a wait.
struct Sources<'a> {
    /// The ring of messages is the last one.
    fds: Vec<PollFd<'a>>,
}

impl<'a> Sources<'a> {
    /// The ring itself is polled, and not libbpf's epoll, which notices only records that wake it.
    /// A record that does not wake it, behind one that was still being written at the last read,
    /// would wait until the sleep ends.
    fn new(others: impl Iterator<Item = BorrowedFd<'a>>, ring: BorrowedFd<'a>) -> Sources<'a> {
        let readable = |fd| PollFd::new(fd, PollFlags::POLLIN);
        let fds = others.chain([ring]).map(readable).collect();
        Sources { fds }
    }

    fn others(&self) -> usize {
        self.fds.len() - 1
    }

    /// Waits, and returns whether anything is ready. The ring does not end a nap, because it nearly
    /// always has a record.
    fn wait(&mut self, wait: Wait) -> Result<bool> {
        let (count, time) = match wait {
            Wait::Look => return Ok(false),
            Wait::Nap(time) => (self.others(), time),
            Wait::Sleep(time) => (self.fds.len(), time),
        };
        let time = TimeSpec::new(0, time.as_nanos() as i64);
        match ppoll(&mut self.fds[..count], Some(time), None) {
            Ok(ready) => Ok(ready > 0),
            Err(Errno::EINTR) => Ok(false),
            Err(e) => Err(Error::failed("cannot wait for messages", e)),
        }
    }

    /// Did the last wait find this other descriptor ready?
    fn is_ready(&self, other: usize) -> bool {
        let found = self.fds[..self.others()].get(other);
        found.is_some_and(|fd| fd.any().unwrap_or(true))
    }
}

/// The map of messages, as a descriptor of its own, because the agent is borrowed mutably
/// meanwhile.
fn message_map(agent: &RefCell<Agent<Program>>) -> Result<OwnedFd> {
    let map = agent
        .borrow()
        .program
        .messages()
        .as_fd()
        .try_clone_to_owned();
    map.map_err(|e| Error::failed("cannot read the program's messages", e))
}

fn ring(agent: &Rc<RefCell<Agent<Program>>>) -> Result<RingBuffer<'static>> {
    let failed = |e| Error::failed("cannot read the program's messages", e);
    let borrowed = agent.borrow();
    let agent = Rc::clone(agent);
    let callback = move |bytes: &[u8]| {
        agent.borrow_mut().on_message(bytes);
        0
    };
    let mut builder = RingBufferBuilder::new();
    builder
        .add(borrowed.program.messages(), callback)
        .map_err(failed)?;
    builder.build().map_err(failed)
}

/// Gives the agent at most `most` messages. Returns how many there were.
fn read(ring: &RingBuffer<'_>, most: usize) -> Result<usize> {
    let read = ring.consume_raw_n(most);
    usize::try_from(read).map_err(|_| {
        let why = Errno::from_raw(-read);
        Error::failed("cannot read the program's messages", why)
    })
}

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
        AgentCommand::Take(policies, saved) => {
            match agent.borrow_mut().take_policies(policies, saved) {
                Ok(()) => serde_json::json!({}),
                Err(error) => serde_json::json!({ "error": error.to_string() }),
            }
        }
        AgentCommand::Renew(from) => serde_json::json!({ "next": agent.borrow_mut().renew(from) }),
    }
}

/// These tests use maps of the running kernel.
#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;
    use std::ptr;

    use headway_cc::Duration;
    use libbpf_rs::libbpf_sys::bpf_map_create_opts;
    use libbpf_rs::{ErrorKind, MapHandle, MapType};
    use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};

    use super::*;

    const PAGE: u32 = 4096;

    /// A ring with a record of 8 bytes that has woken no reader: the reader's position in its first
    /// page is moved back by the record. `None` if BPF is not permitted.
    #[allow(unsafe_code, reason = "memory that is shared with the kernel")]
    fn ring_with_record() -> Option<OwnedFd> {
        let options = bpf_map_create_opts {
            sz: size_of::<bpf_map_create_opts>() as _,
            ..Default::default()
        };
        let map = MapHandle::create(MapType::RingBuf, Some("hw_test"), 0, 0, PAGE, &options);
        let map = match map {
            Ok(map) => map.as_fd().try_clone_to_owned().expect("a descriptor"),
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                println!("skipped: BPF maps are not permitted here");
                return None;
            }
            Err(error) => panic!("{error}"),
        };
        let (page, write) = (PAGE as usize, ProtFlags::PROT_READ | ProtFlags::PROT_WRITE);
        let bytes = NonZeroUsize::new(page).expect("a page");
        // SAFETY: a new mapping, and nothing else points into it.
        unsafe {
            let place = mmap(None, bytes, write, MapFlags::MAP_SHARED, &map, 0).expect("a page");
            ptr::write_volatile(place.cast::<i64>().as_ptr(), -16);
            munmap(place, page).expect("it is mapped");
        }
        Some(map)
    }

    #[test]
    #[ignore = "needs root: make test-system"]
    fn a_record_without_a_wake_up_ends_a_sleep_but_not_a_nap() {
        let Some(ring) = ring_with_record() else {
            return;
        };
        let mut sources = Sources::new(std::iter::empty(), ring.as_fd());
        let mut wait = |wait| sources.wait(wait).expect("it can wait");
        assert!(wait(Wait::Sleep(Duration::ZERO)));
        let (begun, nap) = (clock::now(), Duration::from_millis(5));
        assert!(!wait(Wait::Nap(nap)));
        assert!(clock::now().since(begun) >= nap);
        assert!(!sources.is_ready(0));
    }
}
