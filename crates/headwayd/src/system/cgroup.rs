//! The controller of the sockets of a cgroup.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;

use libbpf_rs::{Link, Object, ObjectBuilder};

use crate::error::{Error, Result};

const OBJECT: &[u8] = include_bytes!("../../../kernel/bpf/objects/headway_cgroup.bpf.o");

/// A program that gives each connection of a cgroup a controller; dropped, it is gone.
pub struct Cgroup {
    _object: Object,
    _link: Link,
}

impl Cgroup {
    /// Of the cgroup (version 2) whose folder this is.
    ///
    /// # Errors
    /// One line.
    pub fn attach(folder: &Path, name: &str) -> Result<Cgroup> {
        let wrong = |e: &dyn std::fmt::Display| {
            let text = e.to_string();
            let line = text.lines().next().unwrap_or_default();
            Error::Usage(format!("--cgroup {}: {line}", folder.display()))
        };
        let cgroup = File::open(folder).map_err(|e| wrong(&e))?;
        if !folder.join("cgroup.procs").exists() {
            return Err(wrong(
                &"not a cgroup's folder, such as /sys/fs/cgroup/system.slice",
            ));
        }
        // Every folder of version 2 has this file, and none of version 1.
        if !folder.join("cgroup.controllers").exists() {
            return Err(wrong(
                &"a cgroup of version 1, which takes no such program; give a folder of version 2 (mount -t cgroup2)",
            ));
        }
        let failed = |e: libbpf_rs::Error| match e.kind() {
            libbpf_rs::ErrorKind::PermissionDenied => Error::Failed(
                "--cgroup: not permitted; it takes CAP_NET_ADMIN too (root has it)".to_owned(),
            ),
            _ => Error::failed("--cgroup", e),
        };
        let mut builder = ObjectBuilder::default();
        let mut open = builder.open_memory(OBJECT).map_err(failed)?;
        for mut map in open.maps_mut() {
            // The name to choose is the program's one constant.
            if map.name().to_string_lossy().ends_with(".rodata")
                && let Some(value) = map.initial_value_mut()
            {
                value[..name.len()].copy_from_slice(name.as_bytes());
                value[name.len()] = 0;
            }
        }
        let object = open.load().map_err(failed)?;
        let link = {
            let program = object.progs_mut().next();
            let program = program.ok_or_else(|| wrong(&"its program is empty"))?;
            program.attach_cgroup(cgroup.as_raw_fd()).map_err(failed)?
        };
        Ok(Cgroup {
            _object: object,
            _link: link,
        })
    }
}
