//! A program, loaded and registered.

use headway_fixed::Int8;
use headway_kernel::abi::SettingValues;
use headway_machine::Machine;
use libbpf_rs::{Link, MapCore, MapFlags, Object, ObjectBuilder, OpenObject};

use super::map::OwnPolicy;
use super::{Controller, Counters, Listeners, Settings, Slots, left_over};
use crate::error::{Error, Result};
use crate::system::kernel;

/// How a program is to be loaded.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// Its controller's name in the kernel.
    pub name: &'a str,
    /// How many flows it serves at once.
    pub flows: u32,
    /// Of the ring buffer: a power of two, and at least a page.
    pub ring_bytes: u32,
    /// Does an agent answer? If not, no flow has a slot, and the base controller has each.
    pub has_agent: bool,
}

/// A program; dropped, it is unregistered, and flows that have it keep it.
pub struct Program {
    pub controller: Controller,
    pub name: String,
    pub slots: Slots,
    pub counters: Counters,
    settings: Settings,
    own_policy: Option<OwnPolicy>,
    /// Before its object: where the kernel has no links it is unregistered by the object's map.
    link: Option<Link>,
    object: Object,
}

impl Program {
    /// The longest name that the kernel takes.
    pub const LONGEST_NAME: usize = 15;
    /// `HEADWAY_FLOWS`
    pub const MOST_FLOWS: u32 = 16384;

    /// Loads a controller's program.
    ///
    /// # Errors
    /// One line: the kernel is too old, or does not permit it.
    pub fn load(controller: Controller, options: Options<'_>) -> Result<Program> {
        kernel::check(controller)?;
        let refused = |e: libbpf_rs::Error| Error::Failed(refusal(controller, options.name, &e));
        let mut builder = ObjectBuilder::default();
        let mut open = builder.open_memory(controller.object()).map_err(refused)?;
        adapt(&mut open, controller, options).map_err(refused)?;
        if controller == Controller::Bbr {
            set_hz(&mut open, kernel::hz()?);
        }
        let object = open.load().map_err(refused)?;
        let find = |name: &str| {
            let mut maps = object.maps();
            let found = maps.find(|map| map.name() == name);
            found.ok_or_else(|| Error::Failed(format!("its program has no map '{name}'")))
        };
        let slots = Slots::new(&find("actions")?, options.flows as usize)?;
        let counters = Counters::new(&find("counters")?)?;
        let settings = Settings::new(&find("settings")?)?;
        let own_policy = match controller {
            Controller::Rate => Some(OwnPolicy::new(&find("int8")?)?),
            _ => None,
        };
        if options.has_agent {
            let free = find("free_slots")?;
            for slot in 0..options.flows {
                let value = slot.to_ne_bytes();
                free.update(&[], &value, MapFlags::ANY).map_err(refused)?;
            }
        }
        Ok(Program {
            controller,
            name: options.name.to_owned(),
            slots,
            counters,
            settings,
            own_policy,
            link: None,
            object,
        })
    }

    /// Sets what holds for all its flows, also for those that there are.
    pub fn configure(&mut self, settings: SettingValues, own_policy: Option<&Int8>) {
        self.settings.write(settings);
        if let Some(place) = &mut self.own_policy {
            place.write(own_policy);
        }
    }

    /// Tells the program whether the agent is reading its messages. If not, a flow's request wakes the agent.
    pub fn set_awake(&self, is_awake: bool) {
        self.settings.set_awake(is_awake);
    }

    /// Registers the controller in the kernel: from now on sockets may choose it.
    ///
    /// # Errors
    /// One line: the kernel has a controller of that name.
    pub fn register(&mut self) -> Result<()> {
        let refused = |e: libbpf_rs::Error| Error::Failed(refusal(self.controller, &self.name, &e));
        let mut maps = self.object.maps_mut();
        let own = maps.find(|map| map.name() == self.controller.name());
        let mut own =
            own.ok_or_else(|| Error::Failed("its program registers nothing".to_owned()))?;
        let mut link = own.attach_struct_ops();
        if matches!(&link, Err(e) if e.kind() == libbpf_rs::ErrorKind::AlreadyExists)
            && !kernel::has_links()
            && left_over::unregister(&self.name)
        {
            tracing::warn!(
                name = self.name,
                "removed the controller that a killed agent had left registered"
            );
            link = own.attach_struct_ops();
        }
        self.link = Some(link.map_err(refused)?);
        Ok(())
    }

    /// What looks for listening sockets that keep its name's controller of an agent that has ended.
    ///
    /// # Errors
    /// One line.
    pub fn listeners(&self) -> Result<Listeners> {
        let failed = |e| Error::failed("cannot tell its own map", e);
        let mut maps = self.object.maps();
        let own = maps.find(|map| map.name() == self.controller.name());
        let own = own.ok_or_else(|| Error::Failed("its program registers nothing".to_owned()))?;
        Listeners::new(&self.name, own.info().map_err(failed)?.info.id)
    }

    /// Where a controller's name is in its `tcp_congestion_ops`.
    pub(super) fn find_name(value: &[u8], name: &str) -> Option<usize> {
        let mut wanted = name.as_bytes().to_vec();
        wanted.resize(Program::LONGEST_NAME + 1, 0);
        value.windows(wanted.len()).position(|w| w == wanted)
    }

    /// Where its messages come from.
    ///
    /// # Panics
    /// Never: it was loaded with it.
    pub fn messages(&self) -> libbpf_rs::Map<'_> {
        let mut maps = self.object.maps();
        let found = maps.find(|map| map.name() == "messages");
        found.expect("each program has one")
    }
}

fn adapt(
    open: &mut OpenObject,
    controller: Controller,
    options: Options<'_>,
) -> libbpf_rs::Result<()> {
    for mut map in open.maps_mut() {
        let name = map.name().to_string_lossy().into_owned();
        match name.as_str() {
            "messages" => map.set_max_entries(options.ring_bytes)?,
            "actions" | "free_slots" => map.set_max_entries(options.flows)?,
            own if own == controller.name() => {
                if !kernel::has_links() {
                    map.set_map_flags(map.map_flags() & !libbpf_rs::libbpf_sys::BPF_F_LINK)?;
                }
                if let Some(value) = map.initial_value_mut() {
                    rename(value, controller.name(), options.name);
                    if !kernel::has_tx_start() {
                        // Its last field: `cwnd_event_tx_start`.
                        let last = value.len() - size_of::<usize>();
                        value[last..].fill(0);
                    }
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// The one constant of headway_bbr.
fn set_hz(open: &mut OpenObject, hz: u32) {
    for mut map in open.maps_mut() {
        if map.name().to_string_lossy().ends_with(".rodata")
            && let Some(value) = map.initial_value_mut()
        {
            value[..4].copy_from_slice(&hz.to_ne_bytes());
        }
    }
}

/// Puts another name where the controller's own is in its `tcp_congestion_ops`.
fn rename(value: &mut [u8], own: &str, name: &str) {
    if let Some(at) = Program::find_name(value, own) {
        let field = &mut value[at..=at + Program::LONGEST_NAME];
        field.fill(0);
        field[..name.len()].copy_from_slice(name.as_bytes());
    }
}

fn refusal(controller: Controller, name: &str, error: &libbpf_rs::Error) -> String {
    let whole = format!("{error:#}");
    let whole = whole.lines().next().unwrap_or_default();
    let why = match error.kind() {
        // EACCES: who has no right to it has EPERM.
        libbpf_rs::ErrorKind::PermissionDenied if whole.contains("(os error 13)") => {
            format!("the verifier, or a security module, refuses its program: {whole}")
        }
        libbpf_rs::ErrorKind::PermissionDenied => {
            format!("not permitted: {}", Machine::here().bpf())
        }
        libbpf_rs::ErrorKind::AlreadyExists if kernel::has_links() => {
            "the kernel has a controller of that name; is another headwayd running? --name gives it another".to_owned()
        }
        libbpf_rs::ErrorKind::AlreadyExists => format!(
            "the kernel has a controller of that name; is another headwayd running? --name gives it another; if one was killed: bpftool struct_ops unregister name {}",
            controller.name()
        ),
        _ if controller == Controller::Bbr && !kernel::has_bbr() => {
            "the kernel has no BBR to call; 'modprobe tcp_bbr' may help".to_owned()
        }
        _ => Machine::here()
            .bpf_missing()
            .unwrap_or_else(|| whole.to_owned()),
    };
    format!("cannot register {name}: {why}")
}
