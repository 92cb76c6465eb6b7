//! Loads and registers a program.

use headway_cc::Time;
use headway_fixed::Int8;
use headway_kernel::abi::{Known, SettingValues};
use headway_machine::Machine;
use libbpf_rs::libbpf_sys::{BPF_F_MMAPABLE, bpf_map_create_opts};
use libbpf_rs::{
    Link, MapCore, MapFlags, MapHandle, MapType, Object, ObjectBuilder, OpenObject, libbpf_sys,
};

use super::kept::{ControllerPins, Pins, Version};
use super::map::OwnPolicy;
use super::{Controller, Counters, KnownFlows, Listeners, Settings, Slots, layout, left_over};
use crate::error::{Error, Result};
use crate::system::{clock, kernel};

/// How a program is to be loaded.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// Its controller's name in the kernel.
    pub name: &'a str,
    /// How many flows it serves at once.
    pub flows: u32,
    /// The size of the ring buffer: a power of two, and at least a page.
    pub ring_bytes: u32,
    /// Does an agent answer? If not, no flow has a slot, and the base controller controls all
    /// flows.
    pub has_agent: bool,
    /// May it outlive its agent?
    pub is_kept: bool,
}

/// A program. Dropping it unregisters it unless it is pinned. Flows that have it keep it.
pub struct Program {
    pub controller: Controller,
    pub name: String,
    /// The digest of its object.
    pub version: String,
    pub slots: Slots,
    pub counters: Counters,
    /// What the next agent needs to know; `None` if the program ends with its agent.
    pub known: Option<KnownFlows>,
    settings: Settings,
    own_policy: Option<OwnPolicy>,
    maps: Maps,
    /// This is dropped before `object`: a kernel without links unregisters the controller by the
    /// object's map.
    link: Option<Link>,
    /// `None` if an earlier agent has loaded the program.
    object: Option<Object>,
}

/// The maps that the agent uses, by name, which is also the name of their pins.
struct Maps(Vec<(&'static str, MapHandle)>);

impl Maps {
    const ACTIONS: &str = "actions";
    const COUNTERS: &str = "counters";
    const SETTINGS: &str = "settings";
    const MESSAGES: &str = "messages";
    /// Only headway_rate has this map.
    const INT8: &str = "int8";
    /// The map that registers the controller. In the object it has the controller's name.
    const CONTROLLER: &str = "controller";
    /// The agent's own map for the next agent.
    const KNOWN: &str = "known";

    fn names(controller: Controller) -> Vec<&'static str> {
        let all = [
            Maps::ACTIONS,
            Maps::COUNTERS,
            Maps::SETTINGS,
            Maps::MESSAGES,
            Maps::CONTROLLER,
        ];
        let int8 = (controller == Controller::Rate).then_some(Maps::INT8);
        all.into_iter().chain(int8).collect()
    }

    fn get(&self, wanted: &str) -> Result<&MapHandle> {
        let found = self.0.iter().find(|(name, _)| *name == wanted);
        let found = found.map(|(_, map)| map);
        found.ok_or_else(|| Error::Failed(format!("the BPF program has no map '{wanted}'")))
    }
}

impl Program {
    /// The longest name that the kernel takes.
    pub const LONGEST_NAME: usize = 15;

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
        let (object, own) = (controller.object(), controller.name());
        layout::set_field(&mut open, object, own, "name", options.name.as_bytes())?;
        if !kernel::has_tx_start() {
            layout::set_field(&mut open, object, own, "cwnd_event_tx_start", &[])?;
        }
        if controller == Controller::Bbr {
            let hz = kernel::hz()?.to_ne_bytes();
            layout::set_constant(&mut open, object, "hz", &hz)?;
        }
        let object = open.load().map_err(refused)?;
        let find = |name: &str| {
            let mut maps = object.maps();
            let found = maps.find(|map| map.name() == name);
            found.ok_or_else(|| Error::Failed(format!("the BPF program has no map '{name}'")))
        };
        let mut maps = Vec::new();
        for name in Maps::names(controller) {
            let map = match name {
                Maps::CONTROLLER => find(controller.name()),
                _ => find(name),
            };
            maps.push((name, MapHandle::try_from(&map?).map_err(refused)?));
        }
        if options.is_kept {
            maps.push((Maps::KNOWN, known_flows(options.flows).map_err(refused)?));
        }
        if options.has_agent {
            let free = find("free_slots")?;
            for slot in 0..options.flows {
                let value = slot.to_ne_bytes();
                free.update(&[], &value, MapFlags::ANY).map_err(refused)?;
            }
        }
        let version = Version::own(controller).digest;
        let mut program = Program::over(controller, options.name, version, Maps(maps), 0)?;
        program.object = Some(object);
        Ok(program)
    }

    /// Adopts the program that an earlier agent has pinned.
    ///
    /// # Errors
    /// One line: pins are missing, or do not fit this agent.
    pub fn adopt(controller: Controller, options: Options<'_>, pins: &Pins) -> Result<Program> {
        let mut maps = Vec::new();
        for name in Maps::names(controller).into_iter().chain([Maps::KNOWN]) {
            maps.push((name, pins.map(name)?));
        }
        let maps = Maps(maps);
        let link = pins.link()?;
        let registers = match link.info().map(|info| info.info) {
            Ok(libbpf_rs::query::LinkTypeInfo::StructOps(of)) => Some(of.map_id),
            _ => None,
        };
        if registers != Some(id_of(maps.get(Maps::CONTROLLER)?)?) {
            return Err(Error::Failed(
                "the pinned link does not register the controller".to_owned(),
            ));
        }
        for (option, map, wanted, unit) in [
            ("--flows", Maps::ACTIONS, options.flows, 1),
            ("--ring", Maps::MESSAGES, options.ring_bytes, 1024),
        ] {
            let has = maps.get(map)?.max_entries();
            if has != wanted {
                tracing::warn!(
                    "{option} stays at {}, not {}: {} is kept from an earlier agent; to change it: headwayd unload, then start headwayd",
                    has / unit,
                    wanted / unit,
                    options.name
                );
            }
        }
        // No flow has seen a policy of this number.
        let generation = (clock::now().as_nanos() / 1_000_000) as u32;
        let version = pins.version.digest.clone();
        let mut program = Program::over(controller, options.name, version, maps, generation)?;
        program.link = Some(link);
        Ok(program)
    }

    fn over(
        controller: Controller,
        name: &str,
        version: String,
        maps: Maps,
        generation: u32,
    ) -> Result<Program> {
        let own_policy = maps.get(Maps::INT8).ok();
        let own_policy = own_policy.map(|map| OwnPolicy::new(map, generation));
        let known = maps.get(Maps::KNOWN).ok();
        Ok(Program {
            controller,
            name: name.to_owned(),
            version,
            slots: Slots::new(maps.get(Maps::ACTIONS)?)?,
            counters: Counters::new(maps.get(Maps::COUNTERS)?)?,
            known: known.map(KnownFlows::new).transpose()?,
            settings: Settings::new(maps.get(Maps::SETTINGS)?)?,
            own_policy: own_policy.transpose()?,
            maps,
            link: None,
            object: None,
        })
    }

    /// How many flows it serves at once. If an earlier agent has loaded it, that agent's option
    /// holds.
    pub fn flows(&self) -> u32 {
        self.slots.count() as u32
    }

    /// Has an earlier agent loaded it?
    pub fn is_adopted(&self) -> bool {
        self.object.is_none()
    }

    /// Pins the program, so that it outlives this process.
    ///
    /// # Errors
    /// One line. The program ends with this process then.
    pub fn keep(&mut self, place: &ControllerPins) -> Result<()> {
        let version = Version::own(self.controller);
        match &mut self.link {
            Some(link) => place.keep(&version, &mut self.maps.0, link),
            None => Ok(()),
        }
    }

    /// Writes the settings of all its flows, the present ones included.
    ///
    /// # Errors
    /// One line: one of the guard's limits is beyond its range, and nothing is set.
    pub fn configure(&mut self, settings: SettingValues, own_policy: Option<&Int8>) -> Result<()> {
        settings.check()?;
        self.settings.write(SettingValues {
            most_waiting_bytes: self.maps.get(Maps::MESSAGES)?.max_entries() / 2,
            ..settings
        });
        if let Some(place) = &mut self.own_policy {
            place.write(own_policy);
        }
        Ok(())
    }

    /// Tells the program that flows may take slots until then.
    pub fn set_served_until(&self, until: Time) {
        self.settings.set_served_until(until);
    }

    /// Tells the program whether the agent is reading its messages. If not, a flow's request wakes
    /// the agent.
    pub fn set_awake(&self, is_awake: bool) {
        self.settings.set_awake(is_awake);
    }

    /// Registers the controller in the kernel, unless it is registered. From now on sockets may
    /// choose it.
    ///
    /// # Errors
    /// One line: the kernel has a controller of that name.
    pub fn register(&mut self) -> Result<()> {
        let refused = |e: libbpf_rs::Error| Error::Failed(refusal(self.controller, &self.name, &e));
        let Some(object) = &mut self.object else {
            return Ok(());
        };
        let mut maps = object.maps_mut();
        let own = maps.find(|map| map.name() == self.controller.name());
        let mut own =
            own.ok_or_else(|| Error::Failed("the BPF program has no controller".to_owned()))?;
        let mut link = own.attach_struct_ops();
        if matches!(&link, Err(e) if e.kind() == libbpf_rs::ErrorKind::AlreadyExists)
            && !kernel::has_links()
            && left_over::unregister(&self.name)
        {
            tracing::warn!(
                name = self.name,
                "the agent removed the controller that a killed agent had left registered"
            );
            link = own.attach_struct_ops();
        }
        self.link = Some(link.map_err(refused)?);
        Ok(())
    }

    /// Finds listening sockets that keep the controller of this name of an agent that has ended.
    ///
    /// # Errors
    /// One line, if this kernel has no iterator over sockets, or does not permit it.
    pub fn listeners(&self) -> Result<Listeners> {
        Listeners::new(&self.name, id_of(self.maps.get(Maps::CONTROLLER)?)?)
    }

    /// Finds a controller's name in its `tcp_congestion_ops`, as a kernel without links stores it.
    pub(super) fn find_name(value: &[u8], name: &str) -> Option<usize> {
        let mut wanted = name.as_bytes().to_vec();
        wanted.resize(Program::LONGEST_NAME + 1, 0);
        value.windows(wanted.len()).position(|w| w == wanted)
    }

    /// The ring buffer with its messages.
    ///
    /// # Panics
    /// Never, because each program is loaded with this map.
    pub fn messages(&self) -> &MapHandle {
        let found = self.maps.get(Maps::MESSAGES);
        found.expect("each program has one")
    }
}

/// The kernel's number of a map.
fn id_of(map: &MapHandle) -> Result<u32> {
    let info = map.info();
    let info = info.map_err(|e| Error::failed("cannot get the number of a map", e))?;
    Ok(info.info.id)
}

/// Makes the map for the next agent, which no program uses.
fn known_flows(flows: u32) -> libbpf_rs::Result<MapHandle> {
    let options = bpf_map_create_opts {
        sz: size_of::<bpf_map_create_opts>() as libbpf_sys::size_t,
        map_flags: BPF_F_MMAPABLE,
        ..Default::default()
    };
    let value = size_of::<Known>() as u32;
    MapHandle::create(MapType::Array, Some(Maps::KNOWN), 4, value, flows, &options)
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
            own if own == controller.name() && !kernel::has_links() => {
                map.set_map_flags(map.map_flags() & !libbpf_sys::BPF_F_LINK)?;
            }
            _ => {}
        }
    }
    Ok(())
}

fn refusal(controller: Controller, name: &str, error: &libbpf_rs::Error) -> String {
    let whole = format!("{error:#}");
    let whole = whole.lines().next().unwrap_or_default();
    let why = match error.kind() {
        // This is EACCES. A process without the right gets EPERM.
        libbpf_rs::ErrorKind::PermissionDenied if whole.contains("(os error 13)") => {
            format!("the verifier, or a security module, refuses the BPF program: {whole}")
        }
        libbpf_rs::ErrorKind::PermissionDenied => {
            format!("not permitted: {}", Machine::here().bpf())
        }
        libbpf_rs::ErrorKind::AlreadyExists if kernel::has_links() => {
            "the kernel has a controller of that name; is another headwayd running? give this one another name: --name NAME; if none runs: headwayd unload".to_owned()
        }
        libbpf_rs::ErrorKind::AlreadyExists => format!(
            "the kernel has a controller of that name; is another headwayd running? give this one another name: --name NAME; if one was killed: bpftool struct_ops unregister name {}",
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
