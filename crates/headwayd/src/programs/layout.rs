//! Writes values into an object before it is loaded. The object's type information says where the
//! compiler put them.

use std::ops::Range;

use libbpf_rs::OpenObject;
use libbpf_rs::btf::types::{DataSec, MemberAttr, Struct};
use libbpf_rs::btf::{Btf, BtfType, HasSize};

use crate::error::{Error, Result};

/// Sets a constant of the program (`const volatile`). A value that is too short is padded with
/// zeros.
///
/// # Errors
/// One line: the program has no such constant, or a shorter one.
pub fn set_constant(open: &mut OpenObject, object: &[u8], name: &str, value: &[u8]) -> Result<()> {
    let place = constant(object, name)?;
    let mut maps = open.maps_mut();
    let constants = maps.find(|map| map.name().to_string_lossy().ends_with(".rodata"));
    let mut constants = constants.ok_or_else(|| missing("constants"))?;
    let image = constants.initial_value_mut();
    put(
        image.ok_or_else(|| missing("constants"))?,
        place,
        name,
        value,
    )
}

/// Sets a field of the controller that an object registers.
///
/// # Errors
/// One line: there is no such field, or a shorter one.
pub fn set_field(
    open: &mut OpenObject,
    object: &[u8],
    controller: &str,
    name: &str,
    value: &[u8],
) -> Result<()> {
    let place = field(object, "tcp_congestion_ops", name)?;
    let mut maps = open.maps_mut();
    let own = maps.find(|map| map.name() == controller);
    let mut own = own.ok_or_else(|| missing(controller))?;
    let image = own.initial_value_mut();
    put(
        image.ok_or_else(|| missing(controller))?,
        place,
        name,
        value,
    )
}

fn put(image: &mut [u8], place: Range<usize>, name: &str, value: &[u8]) -> Result<()> {
    let room = image
        .get_mut(place)
        .filter(|room| value.len() <= room.len());
    let room =
        room.ok_or_else(|| Error::Failed(format!("the BPF program has no room for '{name}'")))?;
    room.fill(0);
    room[..value.len()].copy_from_slice(value);
    Ok(())
}

fn constant(object: &[u8], name: &str) -> Result<Range<usize>> {
    let types = types(object)?;
    let section: DataSec<'_> = types.type_by_name(".rodata").ok_or_else(|| missing(name))?;
    let is_it = |id| {
        let variable: Option<BtfType<'_>> = types.type_by_id(id);
        variable.and_then(|variable| variable.name()) == Some(name.as_ref())
    };
    let found = section.iter().find(|variable| is_it(variable.ty));
    let found = found.ok_or_else(|| missing(name))?;
    let start = found.offset as usize;
    Ok(start..start + found.size)
}

fn field(object: &[u8], of: &str, name: &str) -> Result<Range<usize>> {
    let types = types(object)?;
    let whole: Struct<'_> = types.type_by_name(of).ok_or_else(|| missing(of))?;
    let starts = whole.iter().map(|member| match member.attr {
        MemberAttr::Normal { offset } | MemberAttr::BitField { offset, .. } => offset as usize / 8,
    });
    let starts: Vec<usize> = starts.chain([whole.size()]).collect();
    let at = whole
        .iter()
        .position(|member| member.name == Some(name.as_ref()));
    let at = at.ok_or_else(|| missing(name))?;
    Ok(starts[at]..starts[at + 1])
}

fn types(object: &[u8]) -> Result<Btf<'_>> {
    let types = Btf::from_raw("headway", object);
    let types = types.map_err(|e| Error::failed("cannot read a program's types", e))?;
    types.ok_or_else(|| missing("types"))
}

fn missing(what: &str) -> Error {
    Error::Failed(format!("the BPF program has no '{what}'"))
}

#[cfg(test)]
mod tests {
    use libbpf_rs::ObjectBuilder;

    use super::super::{Controller, Program};
    use super::*;

    fn open(object: &[u8], work: impl FnOnce(&mut OpenObject)) {
        let mut builder = ObjectBuilder::default();
        work(&mut builder.open_memory(object).expect("an object of ours"));
    }

    fn image(open: &mut OpenObject, name: &str) -> Vec<u8> {
        let mut maps = open.maps_mut();
        let map = maps.find(|map| map.name().to_string_lossy().ends_with(name));
        let mut map = map.unwrap_or_else(|| panic!("{name}"));
        map.initial_value_mut().expect("it has an image").to_vec()
    }

    /// The bytes of the default are where the types say, and no other bytes change.
    #[test]
    fn a_constant_is_where_the_compiler_put_it() {
        const BBR: &[u8] = include_bytes!("../../../kernel/bpf/objects/headway_bbr.bpf.o");
        const CGROUP: &[u8] = include_bytes!("../../../kernel/bpf/objects/headway_cgroup.bpf.o");
        const LISTENERS: &[u8] =
            include_bytes!("../../../kernel/bpf/objects/headway_listeners.bpf.o");
        let hz = 250u32.to_ne_bytes();
        for (object, name, before, after) in [
            (BBR, "hz", &hz[..], &1000u32.to_ne_bytes()[..]),
            (CGROUP, "controller", b"headway_owl\0\0\0\0\0", b"other"),
            (LISTENERS, "controller", b"headway_owl\0\0\0\0\0", b"other"),
            (LISTENERS, "registered", &[0; 4], &[1, 2, 3, 4]),
        ] {
            open(object, |open| {
                let was = image(open, ".rodata");
                let place = constant(object, name).expect(name);
                assert_eq!(&was[place.clone()], before, "{name}");
                set_constant(open, object, name, after).expect(name);
                let is = image(open, ".rodata");
                let mut expected = was.clone();
                expected[place.clone()].fill(0);
                expected[place.start..place.start + after.len()].copy_from_slice(after);
                assert_eq!(is, expected, "{name}");
                let wrong = set_constant(open, object, name, &[0; 17]).expect_err("too long");
                assert!(wrong.to_string().contains("no room"), "{wrong}");
            });
        }
        open(BBR, |open| {
            let wrong = set_constant(open, BBR, "jiffies", &hz).expect_err("there is none");
            assert_eq!(wrong.to_string(), "the BPF program has no 'jiffies'");
        });
    }

    #[test]
    fn the_field_name_is_where_the_controllers_name_is() {
        for controller in Controller::ALL {
            let (object, own) = (controller.object(), controller.name());
            open(object, |open| {
                let was = image(open, own);
                let at = Program::find_name(&was, own).expect("its name is there");
                let place = field(object, "tcp_congestion_ops", "name").expect("a field");
                assert_eq!(place, at..at + Program::LONGEST_NAME + 1, "{own}");
                set_field(open, object, own, "name", b"other").expect("a field");
                let is = image(open, own);
                assert_eq!(&is[at..at + 6], b"other\0", "{own}");
                assert_eq!((&is[..at], &is[at + 16..]), (&was[..at], &was[at + 16..]));
            });
        }
    }
}
