//! Programs that are started in a namespace.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::sys::prctl;
use nix::sys::signal::{SigSet, Signal};
use nix::unistd::{getpid, tcsetpgrp};

use super::Namespace;

/// Makes `command` start in `namespace`, and be killed when the calling thread ends, however that comes.
/// With `foreground` it becomes the foreground process group of the terminal that is its standard input.
#[allow(unsafe_code)]
pub fn confine(command: &mut Command, namespace: &Namespace, foreground: bool) {
    let namespace = namespace.clone();
    if foreground {
        command.process_group(0);
    }
    let prepare = move || {
        prctl::set_pdeathsig(Signal::SIGKILL)?;
        if foreground {
            take_terminal()?;
        }
        // The caller may block signals; the program is not to.
        SigSet::empty().thread_set_mask()?;
        namespace.join().map_err(io::Error::from)
    };
    // SAFETY: between fork and exec `prepare` only makes system calls; it allocates nothing and takes no
    // lock. `Namespace` stays open, as the command owns a copy.
    unsafe { command.pre_exec(prepare) };
}

/// Makes this process's group the foreground one. Leaves a signal blocked.
fn take_terminal() -> nix::Result<()> {
    // The kernel stops a background process that asks for it, unless it blocks this signal.
    SigSet::from(Signal::SIGTTOU).thread_block()?;
    tcsetpgrp(io::stdin(), getpid())
}
