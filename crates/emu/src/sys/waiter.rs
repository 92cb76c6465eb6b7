//! Waiting for packets or a time, whichever comes first.

use std::io;
use std::os::fd::AsFd;

use headway_cc::{Duration, Time};
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

use super::Clock;

/// Wakes its thread when one of its files is readable or a time has come. A `timerfd` is exact,
/// whereas timeouts of `poll` and similar calls are late by a thousandth of their length.
#[derive(Debug)]
pub struct Waiter {
    epoll: Epoll,
    timer: TimerFd,
    clock: Clock,
    armed: Time,
    ready: Vec<usize>,
}

impl Waiter {
    /// The longest wait, so that the caller can check whether to stop.
    pub const LONGEST: Duration = Duration::from_millis(Self::LONGEST_MS as u64);
    const LONGEST_MS: u16 = 100;
    const TIMER: u64 = u64::MAX;

    /// A waiter by `clock`, without files so far.
    ///
    /// # Errors
    /// If the kernel has no room.
    pub fn new(clock: Clock) -> io::Result<Waiter> {
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let waiter = Waiter {
            epoll: Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?,
            timer: TimerFd::new(ClockId::CLOCK_MONOTONIC, flags)?,
            clock,
            armed: Time::NEVER,
            ready: Vec::new(),
        };
        let event = EpollEvent::new(EpollFlags::EPOLLIN | EpollFlags::EPOLLET, Self::TIMER);
        waiter.epoll.add(&waiter.timer, event)?;
        Ok(waiter)
    }

    /// Adds a file, which [`wait`](Self::wait) reports as `index`.
    ///
    /// # Errors
    /// If the kernel has no room.
    pub fn add(&self, file: impl AsFd, index: usize) -> io::Result<()> {
        let event = EpollEvent::new(EpollFlags::EPOLLIN, index as u64);
        Ok(self.epoll.add(file, event)?)
    }

    /// Waits until one of the files is readable, `until` has come, or a tenth of a second has
    /// passed. Returns the indices of the files that are readable.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn wait(&mut self, until: Time) -> io::Result<&[usize]> {
        if until != self.armed {
            self.arm(until)?;
        }
        self.ready.clear();
        let mut events = [EpollEvent::empty(); 64];
        let timeout = EpollTimeout::from(Self::LONGEST_MS);
        let ready = match self.epoll.wait(&mut events, timeout) {
            Ok(ready) => ready,
            Err(Errno::EINTR) => 0,
            Err(error) => return Err(error.into()),
        };
        for event in &events[..ready] {
            match event.data() {
                // The timer is edge-triggered, so it need not be read.
                Self::TIMER => self.armed = Time::NEVER,
                index => self.ready.push(index as usize),
            }
        }
        Ok(&self.ready)
    }

    fn arm(&mut self, until: Time) -> io::Result<()> {
        self.armed = until;
        if until == Time::NEVER {
            return Ok(self.timer.unset()?);
        }
        let ns = self.clock.monotonic_ns(until).max(1);
        let at = TimeSpec::new((ns / 1_000_000_000) as i64, (ns % 1_000_000_000) as i64);
        let flags = TimerSetTimeFlags::TFD_TIMER_ABSTIME;
        Ok(self.timer.set(Expiration::OneShot(at), flags)?)
    }
}
