//! Controllers that killed agents have left. Since Linux 6.4 a controller is registered by a link,
//! which closes when its agent ends. Before, the controller's map keeps the controller and itself
//! in the kernel until the map's element is deleted.

use std::collections::HashSet;
use std::fs;

use libbpf_rs::query::MapInfoIter;
use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType};

use super::{Controller, Program};

/// Unregisters the controller of that name if it is Headway's and no process holds its map. Returns
/// whether it did. Finding the map takes CAP_SYS_ADMIN.
pub fn unregister(name: &str) -> bool {
    let is_ours = |map: &str| Controller::ALL.iter().any(|c| c.name() == map);
    let held = held();
    MapInfoIter::default()
        .filter(|map| map.ty == MapType::StructOps && map.name.to_str().is_some_and(is_ours))
        .filter(|map| !held.contains(&map.id))
        .filter_map(|map| MapHandle::from_map_id(map.id).ok())
        .any(|map| registers(&map, name) && map.delete(&THE_ONE).is_ok())
}

/// The key of the one element of such a map.
const THE_ONE: [u8; 4] = [0; 4];

fn registers(map: &MapHandle, name: &str) -> bool {
    let value = map.lookup(&THE_ONE, MapFlags::empty()).ok().flatten();
    value.is_some_and(|value| Program::find_name(&value, name).is_some())
}

/// The maps that processes hold. A process whose files cannot be read is not an agent, because
/// agents have fewer capabilities than this process.
fn held() -> HashSet<u32> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let files = processes.filter_map(|process| fs::read_dir(process.path().join("fdinfo")).ok());
    let texts = files.flat_map(|files| files.flatten().map(|file| fs::read_to_string(file.path())));
    texts.flatten().filter_map(|text| map_id(&text)).collect()
}

/// The map's number in the kernel's text about an open file.
fn map_id(text: &str) -> Option<u32> {
    let id = text.lines().find_map(|line| line.strip_prefix("map_id:"))?;
    id.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_a_map_is_read_from_its_fdinfo() {
        // From Linux 6.18.
        let map = "pos:\t0\nflags:\t02000002\nmnt_id:\t17\nino:\t1038\nmap_type:\t26\nkey_size:\t4\nvalue_size:\t256\n\
                   max_entries:\t1\nmap_flags:\t0x2000\nmap_extra:\t0x0\nmemlock:\t5264\nmap_id:\t15885\nfrozen:\t0\n";
        assert_eq!(map_id(map), Some(15885));
        let program = "pos:\t0\nflags:\t02000002\nmnt_id:\t17\nino:\t1038\nprog_type:\t27\nprog_jited:\t1\n\
                       prog_tag:\ta18ae2c58be35ac5\nmemlock:\t4096\nprog_id:\t19884\n";
        assert_eq!(map_id(program), None);
    }
}
