//! Array maps in memory that the programs and the agent share.
#![allow(unsafe_code, reason = "memory that is shared with the kernel")]

use std::mem::{offset_of, size_of};
use std::num::NonZeroUsize;
use std::ptr::{NonNull, addr_of_mut, read_volatile, write_volatile};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use headway_cc::Time;
use headway_fixed::Int8;
use headway_kernel::abi::{ActionSlot, CounterValues, Known, Message, SettingValues};
use libbpf_rs::MapCore;
use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};

use crate::error::{Error, Result};

/// An array map of `T`s in this process's memory.
#[derive(Debug)]
struct Shared<T> {
    first: NonNull<T>,
    count: usize,
}

impl<T> Shared<T> {
    fn new(map: &impl MapCore) -> Result<Shared<T>> {
        const { assert!(size_of::<T>().is_multiple_of(8), "elements lie end to end") };
        let count = map.max_entries() as usize;
        let wrong = |why| Error::failed(format!("map '{}'", map.name().display()), why);
        if map.value_size() as usize != size_of::<T>() {
            return Err(wrong("its values have another size"));
        }
        let bytes = NonZeroUsize::new(size_of::<T>() * count);
        let bytes = bytes.ok_or_else(|| wrong("it has no elements"))?;
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
        // SAFETY: the mapping belongs to this object, and nothing points into it any more.
        let _ = unsafe { munmap(self.first.cast(), size_of::<T>() * self.count) };
    }
}

/// The slots in which flows find the agent's actions.
#[derive(Debug)]
pub struct Slots(Shared<ActionSlot>);

impl Slots {
    pub fn new(map: &impl MapCore) -> Result<Slots> {
        Ok(Slots(Shared::new(map)?))
    }

    pub fn count(&self) -> usize {
        self.0.count
    }

    /// Publishes an action and sets its `sequence`. A slot beyond the map is ignored.
    pub fn write(&self, slot: u16, action: &ActionSlot) {
        let Some(place) = self.0.at(slot.into()) else {
            return;
        };
        // SAFETY: within the mapping, aligned as the kernel aligns map values (8 bytes). Only this
        // thread writes.
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
            write_volatile(addr_of_mut!((*place).flags), action.flags);
            write_volatile(addr_of_mut!((*place).which), action.which);
            write_volatile(addr_of_mut!((*place).flow), action.flow);
            sequence.store(next, Ordering::Release);
        }
    }
}

/// The program's counters.
#[derive(Debug)]
pub struct Counters {
    place: Shared<CounterValues>,
    /// Messages that were dropped before this agent started: without an agent all are dropped once
    /// the ring is full.
    ring_dropped: u64,
    /// Wake-ups before this agent started.
    wakes: u64,
    /// Records that were held back before this agent started.
    held_back: u64,
}

impl Counters {
    pub fn new(map: &impl MapCore) -> Result<Counters> {
        let mut counters = Counters {
            place: Shared::new(map)?,
            ring_dropped: 0,
            wakes: 0,
            held_back: 0,
        };
        let before = counters.read();
        (counters.ring_dropped, counters.wakes) = (before.ring_dropped, before.wakes);
        counters.held_back = before.held_back;
        Ok(counters)
    }

    pub fn read(&self) -> CounterValues {
        // SAFETY: within the mapping. Each number is read whole, and they need not be of one
        // moment.
        let counted = unsafe { read_volatile(self.place.first.as_ptr()) };
        CounterValues {
            ring_dropped: counted.ring_dropped.wrapping_sub(self.ring_dropped),
            wakes: counted.wakes.wrapping_sub(self.wakes),
            held_back: counted.held_back.wrapping_sub(self.held_back),
            ..counted
        }
    }
}

/// What this agent leaves to the next one about its flows, by slot.
#[derive(Debug)]
pub struct KnownFlows(Shared<Known>);

impl KnownFlows {
    pub fn new(map: &impl MapCore) -> Result<KnownFlows> {
        Ok(KnownFlows(Shared::new(map)?))
    }

    /// The flows in their slots.
    pub fn read(&self) -> Vec<Known> {
        let all = (0..self.0.count).filter_map(|slot| Some((slot, self.0.at(slot)?)));
        // SAFETY: within the mapping; no other process writes.
        all.map(|(slot, place)| (slot, unsafe { read_volatile(place) }))
            .filter(|(_, known)| known.open.header.flow != 0)
            .filter(|(slot, known)| usize::from(known.open.header.slot) == *slot)
            .map(|(_, known)| known)
            .collect()
    }

    /// Keeps what a message says about the flow in its slot.
    pub fn take(&self, message: &Message) {
        let Some(place) = self.0.at(message.header().slot.into()) else {
            return;
        };
        // SAFETY: within the mapping; only this thread writes. The flow's number is written last,
        // so that an agent that is killed meanwhile leaves no half-written flow.
        unsafe {
            let mut known = read_volatile(place);
            known.take(message);
            let number = addr_of_mut!((*place).open.header.flow);
            write_volatile(number, 0);
            fence(Ordering::Release);
            let flow = std::mem::take(&mut known.open.header.flow);
            write_volatile(place, known);
            fence(Ordering::Release);
            write_volatile(number, flow);
        }
    }
}

/// The settings of all flows of a program.
#[derive(Debug)]
pub struct Settings(Shared<SettingValues>);

impl Settings {
    pub fn new(map: &impl MapCore) -> Result<Settings> {
        Ok(Settings(Shared::new(map)?))
    }

    /// Writes all settings but `served_until_ns`, which the agent renews separately.
    pub fn write(&self, values: SettingValues) {
        let served_until_ns = self.served_until().load(Ordering::Relaxed);
        let values = SettingValues {
            served_until_ns,
            ..values
        };
        // SAFETY: within the mapping. A flow that reads during the write has some of the old values
        // once.
        unsafe { write_volatile(self.0.first.as_ptr(), values) }
    }

    pub fn set_served_until(&self, until: Time) {
        self.served_until()
            .store(until.as_nanos(), Ordering::Relaxed);
    }

    fn served_until(&self) -> &AtomicU64 {
        // SAFETY: within the mapping, aligned.
        unsafe { AtomicU64::from_ptr(addr_of_mut!((*self.0.first.as_ptr()).served_until_ns)) }
    }

    /// Tells the program whether messages are being read. A read after `set_awake(false)` finds all
    /// messages that came before.
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
    /// The newest policy's number, by which flows notice another policy.
    generation: u32,
}

impl OwnPolicy {
    /// The first policy that is written gets a number after `generation`.
    pub fn new(map: &impl MapCore, generation: u32) -> Result<OwnPolicy> {
        Ok(OwnPolicy {
            place: Shared::new(map)?,
            generation: generation & !1,
        })
    }

    /// Replaces the policy of all flows. While its generation is odd, the program decides nothing.
    /// Without a policy (generation 0), the agent decides. An equal policy changes nothing.
    pub fn write(&mut self, policy: Option<&Int8>) {
        let place = self.place.first.as_ptr();
        // SAFETY: within the mapping; no other process writes.
        let before = unsafe { read_volatile(place) };
        let is_whole = before.generation != 0 && before.generation.is_multiple_of(2);
        let is_same = |policy: &Int8| {
            *policy
                == Int8 {
                    generation: policy.generation,
                    ..before.clone()
                }
        };
        if is_whole && policy.is_some_and(is_same) {
            self.generation = before.generation;
            return;
        }
        // SAFETY: within the mapping, aligned; only this thread writes, and its first field is the
        // generation.
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

/// These tests use maps of the running kernel.
#[cfg(test)]
mod tests {
    use headway_kernel::abi::{self, Header, Open, Report, VerdictMessage};
    use libbpf_rs::libbpf_sys::{BPF_F_MMAPABLE, bpf_map_create_opts};
    use libbpf_rs::{ErrorKind, MapFlags, MapHandle, MapType};
    use zerocopy::IntoBytes;

    use super::*;

    /// An array map; `None` if BPF is not permitted.
    fn map<T>(count: u32) -> Option<MapHandle> {
        let options = bpf_map_create_opts {
            sz: size_of::<bpf_map_create_opts>() as _,
            map_flags: BPF_F_MMAPABLE,
            ..Default::default()
        };
        let (kind, size) = (MapType::Array, size_of::<T>() as u32);
        match MapHandle::create(kind, Some("hw_test"), 4, size, count, &options) {
            Ok(map) => Some(map),
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                println!("skipped: BPF maps are not permitted here");
                None
            }
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    #[ignore = "needs root: make test-system"]
    fn a_map_with_values_of_another_size_is_refused() {
        let Some(map) = map::<[u64; 3]>(1) else {
            return;
        };
        let error = Settings::new(&map).expect_err("24 bytes").to_string();
        assert!(error.contains("another size"), "{error}");
    }

    #[test]
    #[ignore = "needs root: make test-system"]
    fn an_equal_policy_keeps_its_generation() {
        let Some(map) = map::<Int8>(1) else { return };
        let generation = || {
            let value = map.lookup(&[0; 4], MapFlags::ANY).expect("an array");
            u32::from_ne_bytes(value.expect("one")[..4].try_into().expect("four bytes"))
        };
        let policy = |min_rate| Int8 {
            min_rate,
            ..Int8::default()
        };
        let mut first = OwnPolicy::new(&map, 0).expect("a map");
        first.write(Some(&policy(1)));
        assert_eq!(generation(), 2);
        // The next agent writes the same policy.
        let mut second = OwnPolicy::new(&map, 77).expect("a map");
        second.write(Some(&policy(1)));
        assert_eq!(generation(), 2);
        second.write(Some(&policy(2)));
        assert_eq!(generation(), 4);
        let mut third = OwnPolicy::new(&map, 77).expect("a map");
        third.write(Some(&policy(3)));
        assert_eq!(generation(), 78);
        third.write(None);
        assert_eq!(generation(), 0);
    }

    #[test]
    #[ignore = "needs root: make test-system"]
    fn drops_before_the_agent_started_are_not_counted() {
        let Some(map) = map::<CounterValues>(1) else {
            return;
        };
        let count = |flows, ring_dropped| {
            let counted = CounterValues {
                flows,
                ring_dropped,
                wakes: ring_dropped,
                held_back: ring_dropped,
                trips: [flows; 8],
                ..CounterValues::default()
            };
            let written = map.update(&[0; 4], counted.as_bytes(), MapFlags::ANY);
            written.expect("an array");
        };
        count(3, 1000);
        let counters = Counters::new(&map).expect("a map");
        count(5, 1002);
        let told = counters.read();
        assert_eq!((told.flows, told.trips[1]), (5, 5));
        assert_eq!((told.ring_dropped, told.wakes, told.held_back), (2, 2, 2));
    }

    #[test]
    #[ignore = "needs root: make test-system"]
    fn the_next_agent_reads_the_flows_of_this_one() {
        let Some(map) = map::<Known>(3) else { return };
        let flows = KnownFlows::new(&map).expect("a map");
        let open = |flow, slot| {
            let header = Header::of::<Open>(abi::OPEN, flow, slot);
            Message::Open(Open {
                header,
                mss: 1500,
                ..Open::default()
            })
        };
        let verdict = |flow, slot| {
            let header = Header::of::<VerdictMessage>(abi::VERDICT, flow, slot);
            Message::Verdict(VerdictMessage {
                header,
                now_ns: 1,
                reason: 2,
                trips: 3,
            })
        };
        let close = |flow, slot| {
            let header = Header::of::<Report>(abi::CLOSE, flow, slot);
            Message::Close(Report {
                header,
                ..Report::default()
            })
        };
        // The last slot is beyond the map.
        for message in [open(7, 0), open(8, 1), open(9, 2), open(10, 3)] {
            flows.take(&message);
        }
        // Some messages are from flows that had the slots before.
        for message in [verdict(7, 0), verdict(1, 1), close(2, 1), close(9, 2)] {
            flows.take(&message);
        }
        let next = KnownFlows::new(&map).expect("a map").read();
        let told: Vec<_> = (next.iter())
            .map(|known| (known.open.header.flow, known.judged().map(|v| v.trips)))
            .collect();
        assert_eq!(told, [(7, Some(3)), (8, None)]);
    }
}
