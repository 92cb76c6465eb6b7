//! Array maps that the programs and the agent both have in their memory.
#![allow(unsafe_code, reason = "memory that is shared with the kernel")]

use std::mem::{offset_of, size_of};
use std::num::NonZeroUsize;
use std::os::fd::AsFd;
use std::ptr::{NonNull, addr_of_mut, read_volatile, write_volatile};
use std::sync::atomic::{AtomicU32, Ordering, fence};

use headway_fixed::Int8;
use headway_kernel::abi::{ActionSlot, CounterValues, SettingValues};
use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};

use crate::error::{Error, Result};

/// An array map of `T`s in this process's memory.
#[derive(Debug)]
struct Shared<T> {
    first: NonNull<T>,
    count: usize,
}

impl<T> Shared<T> {
    fn new(map: &impl AsFd, count: usize) -> Result<Shared<T>> {
        const { assert!(size_of::<T>().is_multiple_of(8), "elements lie end to end") };
        let bytes = NonZeroUsize::new(size_of::<T>() * count)
            .ok_or_else(|| Error::Failed("a map without elements".to_owned()))?;
        let protection = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let mapped = unsafe {
            mmap(
                None,
                bytes,
                protection,
                MapFlags::MAP_SHARED,
                map.as_fd(),
                0,
            )
        };
        let first = mapped.map_err(|e| Error::failed("cannot map a BPF map", e))?;
        Ok(Shared {
            first: first.cast(),
            count,
        })
    }

    fn at(&self, index: usize) -> Option<*mut T> {
        // SAFETY: within the mapping.
        (index < self.count).then(|| unsafe { self.first.as_ptr().add(index) })
    }
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nothing points into it any more.
        let _ = unsafe { munmap(self.first.cast(), size_of::<T>() * self.count) };
    }
}

/// Where flows find the agent's actions.
#[derive(Debug)]
pub struct Slots(Shared<ActionSlot>);

impl Slots {
    pub fn new(map: &impl AsFd, count: usize) -> Result<Slots> {
        Ok(Slots(Shared::new(map, count)?))
    }

    /// Publishes an action; its `sequence` is given here. A slot that there is not takes nothing.
    pub fn write(&self, slot: u16, action: &ActionSlot) {
        let Some(place) = self.0.at(slot.into()) else {
            return;
        };
        // SAFETY: within the mapping, aligned as the kernel aligns map values (8 bytes). Only this thread writes.
        unsafe {
            let sequence = place
                .byte_add(offset_of!(ActionSlot, sequence))
                .cast::<u32>();
            let sequence = AtomicU32::from_ptr(sequence);
            let next = (sequence.load(Ordering::Relaxed) & !1).wrapping_add(2);
            sequence.store(next.wrapping_sub(1), Ordering::Relaxed);
            fence(Ordering::Release);
            write_volatile(addr_of_mut!((*place).decided_ns), action.decided_ns);
            write_volatile(addr_of_mut!((*place).answered_ns), action.answered_ns);
            write_volatile(addr_of_mut!((*place).expires_ns), action.expires_ns);
            write_volatile(addr_of_mut!((*place).due_ns), action.due_ns);
            write_volatile(addr_of_mut!((*place).values), action.values);
            write_volatile(addr_of_mut!((*place).kind), action.kind);
            write_volatile(addr_of_mut!((*place).which), action.which);
            write_volatile(addr_of_mut!((*place).flow), action.flow);
            sequence.store(next, Ordering::Release);
        }
    }
}

/// What the programs count.
#[derive(Debug)]
pub struct Counters(Shared<CounterValues>);

impl Counters {
    pub fn new(map: &impl AsFd) -> Result<Counters> {
        Ok(Counters(Shared::new(map, 1)?))
    }

    pub fn read(&self) -> CounterValues {
        // SAFETY: within the mapping; each number is read whole, and only that matters.
        unsafe { read_volatile(self.0.first.as_ptr()) }
    }
}

/// What is set for all flows of a program.
#[derive(Debug)]
pub struct Settings(Shared<SettingValues>);

impl Settings {
    pub fn new(map: &impl AsFd) -> Result<Settings> {
        Ok(Settings(Shared::new(map, 1)?))
    }

    pub fn write(&self, values: SettingValues) {
        // SAFETY: within the mapping. A flow that reads while it changes has some of the old values once.
        unsafe { write_volatile(self.0.first.as_ptr(), values) }
    }

    /// Says whether messages are being read. What is read after `false` is all that came before it.
    pub fn set_awake(&self, is_awake: bool) {
        // SAFETY: within the mapping, aligned.
        let place = unsafe { AtomicU32::from_ptr(addr_of_mut!((*self.0.first.as_ptr()).is_awake)) };
        place.store(is_awake.into(), Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }
}

/// The policy that a program evaluates itself.
#[derive(Debug)]
pub struct OwnPolicy {
    place: Shared<Int8>,
    /// Of the last one that was there: flows know another one by its number.
    generation: u32,
}

impl OwnPolicy {
    pub fn new(map: &impl AsFd) -> Result<OwnPolicy> {
        Ok(OwnPolicy {
            place: Shared::new(map, 1)?,
            generation: 0,
        })
    }

    /// Replaces it, also for the flows that there are: while its generation is odd nothing is decided. Without one,
    /// generation 0, the agent decides.
    pub fn write(&mut self, policy: Option<&Int8>) {
        let place = self.place.first.as_ptr();
        // SAFETY: within the mapping, aligned; only this thread writes, and its first field is the generation.
        unsafe {
            let generation = AtomicU32::from_ptr(addr_of_mut!((*place).generation));
            let Some(policy) = policy else {
                generation.store(0, Ordering::Release);
                return;
            };
            let next = self.generation.wrapping_add(2).max(2);
            self.generation = next;
            generation.store(next.wrapping_sub(1), Ordering::Relaxed);
            fence(Ordering::SeqCst);
            let mut whole = policy.clone();
            whole.generation = next.wrapping_sub(1);
            write_volatile(place, whole);
            generation.store(next, Ordering::Release);
        }
    }
}
