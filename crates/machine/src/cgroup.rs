//! Cgroups.

use std::io;
use std::path::Path;

use super::{Machine, line};

impl Machine {
    /// Why a folder is not a cgroup of version 2; only these take programs.
    pub fn cgroup(&self, folder: &Path) -> Option<String> {
        let give = match self.mounts_of("cgroup2").first() {
            Some(mount) => format!("give one of version 2, such as {}/NAME", mount.display()),
            None => "version 2 is not mounted here: 'sudo mount -t cgroup2 none /mnt', and give \
                     one below /mnt"
                .to_owned(),
        };
        let has = |name: &str| folder.join(name).exists();
        match folder.metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Some(line("there is no such cgroup", give))
            }
            Err(error) => Some(error.to_string()),
            Ok(_) if !has("cgroup.procs") => Some(line("it is not a cgroup's folder", give)),
            // Every folder of version 2 has this file, and no folder of version 1 does.
            Ok(_) if !has("cgroup.controllers") => Some(line("it is of cgroup version 1", give)),
            Ok(_) => None,
        }
    }
}
