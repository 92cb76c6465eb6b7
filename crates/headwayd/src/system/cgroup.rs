//! The controller of the sockets of a cgroup.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;

use headway_machine::Machine;
use libbpf_rs::{Link, Object, ObjectBuilder};

use crate::error::{Error, Result};
use crate::programs::layout;

const OBJECT: &[u8] = include_bytes!("../../../kernel/bpf/objects/headway_cgroup.bpf.o");

/// A program that gives each connection of a cgroup a controller; dropped, it is gone.
pub struct Cgroup {
    _object: Object,
    _link: Link,
}

impl Cgroup {
    /// That a folder is a cgroup's which takes programs.
    ///
    /// # Errors
    /// One line.
    pub fn check(folder: &Path) -> Result<()> {
        match Machine::here().cgroup(folder) {
            None => Ok(()),
            Some(why) => Err(Error::Usage(format!(
                "--cgroup {}: {why}",
                folder.display()
            ))),
        }
    }

    /// Of the cgroup whose folder this is, once it has been [checked](Self::check).
    ///
    /// # Errors
    /// One line.
    pub fn attach(folder: &Path, name: &str) -> Result<Cgroup> {
        let option = format!("--cgroup {}", folder.display());
        let cgroup = File::open(folder).map_err(|e| Error::Usage(format!("{option}: {e}")))?;
        let failed = |e: libbpf_rs::Error| match e.kind() {
            libbpf_rs::ErrorKind::PermissionDenied => {
                let why = Machine::here().cgroup_program();
                Error::Failed(format!("{option}: not permitted: {why}"))
            }
            _ => Error::failed(&option, e),
        };
        let mut builder = ObjectBuilder::default();
        let mut open = builder.open_memory(OBJECT).map_err(failed)?;
        layout::set_constant(&mut open, OBJECT, "controller", name.as_bytes())?;
        let object = open.load().map_err(failed)?;
        let link = {
            let program = object.progs_mut().next();
            let program = program.ok_or_else(|| Error::failed(&option, "its program is empty"))?;
            program.attach_cgroup(cgroup.as_raw_fd()).map_err(failed)?
        };
        Ok(Cgroup {
            _object: object,
            _link: link,
        })
    }
}
