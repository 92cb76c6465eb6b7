//! Sets the controller of a cgroup's connections.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;

use headway_machine::Machine;
use libbpf_rs::{Link, Object, ObjectBuilder};

use crate::error::{Error, Result};
use crate::programs::layout;

const OBJECT: &[u8] = include_bytes!("../../../kernel/bpf/objects/headway_cgroup.bpf.o");

/// A program that gives each new connection of a cgroup a controller. Dropping it detaches it.
pub struct Cgroup {
    _object: Object,
    _link: Link,
}

impl Cgroup {
    /// Checks that a folder belongs to a cgroup that takes programs.
    ///
    /// # Errors
    /// One line, if it does not.
    pub fn check(folder: &Path) -> Result<()> {
        match Machine::here().cgroup(folder) {
            None => Ok(()),
            Some(why) => Err(Error::Usage(format!(
                "--cgroup {}: {why}",
                folder.display()
            ))),
        }
    }

    /// Attaches a program to the cgroup with this folder, which has been [checked](Self::check).
    ///
    /// # Errors
    /// One line, if the kernel does not take the program.
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
            let program =
                program.ok_or_else(|| Error::failed(&option, "the BPF program is empty"))?;
            program.attach_cgroup(cgroup.as_raw_fd()).map_err(failed)?
        };
        Ok(Cgroup {
            _object: object,
            _link: link,
        })
    }
}
