//! Programs that are started in a namespace.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::errno::Errno;
use nix::sys::prctl;
use nix::sys::signal::{SigSet, Signal};
use nix::unistd::{Pid, getpid, getppid, tcsetpgrp};

use super::Namespace;

/// Makes `command` start in `namespace`, and be killed when the calling thread ends for whatever
/// reason. With `foreground` it becomes the foreground process group of the terminal that is its
/// standard input.
#[allow(unsafe_code)]
pub fn confine(command: &mut Command, namespace: &Namespace, foreground: bool) {
    let namespace = namespace.clone();
    let parent = getpid();
    if foreground {
        command.process_group(0);
    }
    let prepare = move || {
        tie_to(parent)?;
        if foreground {
            take_terminal()?;
        }
        // The caller may block signals; the program must not.
        SigSet::empty().thread_set_mask()?;
        namespace.join().map_err(io::Error::from)
    };
    // SAFETY: between fork and exec `prepare` only makes system calls; it allocates nothing and
    // takes no lock. `Namespace` stays open, as the command owns a copy.
    unsafe { command.pre_exec(prepare) };
}

/// Makes this process's group the foreground one. SIGTTOU stays blocked.
fn take_terminal() -> nix::Result<()> {
    // The kernel stops a background process that does this, unless it blocks this signal.
    SigSet::from(Signal::SIGTTOU).thread_block()?;
    tcsetpgrp(io::stdin(), getpid())
}

/// Makes this process be killed when the thread that has started it ends. `parent` may have ended
/// by now.
fn tie_to(parent: Pid) -> nix::Result<()> {
    prctl::set_pdeathsig(Signal::SIGKILL)?;
    match getppid() == parent {
        true => Ok(()),
        false => Err(Errno::ESRCH),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Does a program start if its parent should be `parent`?
    #[allow(unsafe_code)]
    fn starts(parent: Pid) -> io::Result<bool> {
        let mut command = Command::new("true");
        // SAFETY: it only makes system calls.
        unsafe { command.pre_exec(move || Ok(tie_to(parent)?)) };
        Ok(command.status()?.success())
    }

    #[test]
    fn a_program_does_not_start_when_its_parent_is_gone() {
        assert!(starts(getpid()).unwrap());
        let refused = starts(getppid()).unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(libc::ESRCH));
    }
}
