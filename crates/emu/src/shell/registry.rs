//! The registry of shells: a file for each in one folder. By it, several shells, or one inside
//! another, take different addresses, and the remains of a killed shell can be found.

use std::env;
use std::fs;
use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::fcntl::{Flock, FlockArg};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

use super::ShellError;
use super::address::Slice;
use super::folder;
use super::processes::Process;

/// The variable that names a shell's file to programs inside.
pub const VARIABLE: &str = "HEADWAY_SHELL";

/// The variable with the number of a program's host: 0 is the far side.
pub const HOST: &str = "HEADWAY_HOST";

/// The entry of a shell.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Entry {
    /// The version of this format.
    pub schema: u32,
    /// The process of the emulator.
    pub pid: i32,
    /// The inode of the PID namespace in which it has this number.
    pub pid_namespace: u64,
    /// When it was started, in ticks since the machine was: another process may get its number.
    pub started: u64,
    /// The shell's addresses.
    pub slice: String,
    /// The file of the surrounding shell.
    pub parent: Option<PathBuf>,
    /// The far sides of the surrounding shells and its own, outermost first.
    pub peers: Vec<Ipv4Addr>,
    /// The network namespaces of its hosts.
    pub hosts: Vec<u64>,
    /// The network namespace of its far side, if the shell made it.
    pub far: Option<u64>,
    /// The shell's command.
    pub command: String,
}

impl Entry {
    const SCHEMA: u32 = 1;

    /// Does its shell still run? If it is in another PID namespace, this process cannot know, so it
    /// counts as running.
    pub fn is_alive(&self) -> bool {
        if pid_namespace().is_ok_and(|own| own != self.pid_namespace) {
            return true;
        }
        let process = Process::of(Pid::from_raw(self.pid));
        process.is_some_and(|p| p.started == self.started)
    }

    /// The namespaces that the shell made.
    pub fn namespaces(&self) -> impl Iterator<Item = u64> {
        self.hosts.iter().copied().chain(self.far)
    }

    /// The index of its host in this namespace, from 0.
    fn host_in(&self, namespace: u64) -> Option<usize> {
        self.hosts.iter().position(|host| *host == namespace)
    }
}

/// The inode of the PID namespace that this process is in.
fn pid_namespace() -> io::Result<u64> {
    Ok(fs::metadata("/proc/self/ns/pid")?.ino())
}

/// What a shell needs of the registry.
#[derive(Debug)]
pub struct Request {
    /// The network namespaces of its hosts.
    pub hosts: Vec<u64>,
    /// The network namespace of the far side, if the shell made it.
    pub far: Option<u64>,
    /// The namespace in which it was started.
    pub outside: u64,
    /// Addresses that are already used there.
    pub taken: Vec<Ipv4Addr>,
    /// The shell's command.
    pub command: String,
}

/// The registry's folder.
#[derive(Debug)]
pub struct Registry {
    folder: PathBuf,
}

/// A shell's entry. It is removed when this is dropped.
#[derive(Debug)]
pub struct Claim {
    path: PathBuf,
    /// The shell's addresses.
    pub slice: Slice,
    /// The far sides of the surrounding shells and its own, outermost first.
    pub peers: Vec<Ipv4Addr>,
}

impl Registry {
    const LOCK: &str = "registry.lock";
    const DRAFT: &str = "draft";
    const LOCK_TRIES: u32 = 500;
    const LOCK_POLL: Duration = Duration::from_millis(10);

    /// Opens the folder of the surrounding shell, or else root's or the user's own.
    ///
    /// # Errors
    /// If no folder can be written to.
    pub fn open() -> Result<Registry, ShellError> {
        let around = env::var_os(VARIABLE).map(PathBuf::from);
        folder::find(around.as_deref().and_then(Path::parent)).map(|folder| Registry { folder })
    }

    /// Every entry with its file, the oldest first. Other files are left out.
    pub fn entries(&self) -> Vec<(PathBuf, Entry)> {
        let files = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let mut entries: Vec<(PathBuf, Entry)> = files
            .map(|file| file.path())
            .filter(|path| path.extension().is_some_and(|e| e == "json"))
            .filter_map(|path| {
                let text = fs::read_to_string(&path).ok()?;
                let entry: Entry = serde_json::from_str(&text).ok()?;
                (entry.schema == Entry::SCHEMA).then_some((path, entry))
            })
            .collect();
        entries.sort_by_key(|(_, entry)| (entry.started, entry.pid));
        entries
    }

    /// Writes an entry for a shell of this process, with addresses that no other shell has.
    ///
    /// # Errors
    /// If all addresses are taken, the hosts need more addresses than there are, or the folder
    /// cannot be written to.
    pub fn claim(&self, request: Request) -> Result<Claim, ShellError> {
        let _lock = self.lock()?;
        let mut live = self.entries();
        live.retain(|(_, entry)| entry.is_alive());
        let around = live
            .iter()
            .find_map(|(path, entry)| Some((path, entry, entry.host_in(request.outside)?)));
        let (slice, mut peers) = self.free_slice(&live, around, &request)?;
        if request.hosts.len() > slice.most_hosts() {
            return Err(ShellError::Failed(format!(
                "{} hosts need more addresses than a shell at this depth has; give at most --hosts {}",
                request.hosts.len(),
                slice.most_hosts()
            )));
        }
        peers.push(slice.peer());
        let own = Process::current()
            .ok_or_else(|| ShellError::state(Path::new("/proc"), io::ErrorKind::NotFound.into()))?;
        let entry = Entry {
            schema: Entry::SCHEMA,
            pid: own.pid.as_raw(),
            pid_namespace: pid_namespace().map_err(|e| ShellError::state(Path::new("/proc"), e))?,
            started: own.started,
            slice: slice.to_string(),
            parent: around.map(|(path, ..)| path.clone()),
            peers: peers.clone(),
            hosts: request.hosts,
            far: request.far,
            command: request.command,
        };
        let path = self
            .folder
            .join(format!("{}-{}.json", own.pid, own.started));
        self.write(&path, &entry)?;
        Ok(Claim { path, slice, peers })
    }

    /// A free slice of addresses, and the far sides of the surrounding shells.
    fn free_slice(
        &self,
        live: &[(PathBuf, Entry)],
        around: Option<(&PathBuf, &Entry, usize)>,
        request: &Request,
    ) -> Result<(Slice, Vec<Ipv4Addr>), ShellError> {
        let is_free = |slice: &Slice| {
            let text = slice.to_string();
            live.iter().all(|(_, entry)| entry.slice != text)
                && !request.taken.iter().any(|a| slice.contains(*a))
        };
        let Some((_, parent, host)) = around else {
            let slice = Slice::outermost().find(is_free).ok_or_else(|| {
                ShellError::Failed(format!(
                    "all {} blocks of addresses are in use; end a shell (headway shell --list)",
                    Slice::OUTERMOST
                ))
            })?;
            return Ok((slice, Vec::new()));
        };
        let outer: Slice = parent.slice.parse().map_err(|()| {
            ShellError::Failed(format!(
                "the surrounding shell's entry has malformed addresses: '{}'",
                parent.slice
            ))
        })?;
        let mut inner = outer.inner(host, parent.hosts.len()).peekable();
        if inner.peek().is_none() {
            return Err(ShellError::Failed(format!(
                "shells are nested too deeply for another; at most {} may surround one",
                parent.peers.len() - 1
            )));
        }
        let slice = inner.find(is_free).ok_or_else(|| {
            ShellError::Failed(format!(
                "all {} blocks of addresses of the surrounding shell are in use; end a shell (headway shell --list)",
                Slice::INNER
            ))
        })?;
        Ok((slice, parent.peers.clone()))
    }

    fn write(&self, path: &Path, entry: &Entry) -> Result<(), ShellError> {
        let failed = |e: io::Error| ShellError::state(path, e);
        let text = serde_json::to_string_pretty(entry).map_err(|e| failed(e.into()))?;
        // A reader sees the whole entry or none.
        let draft = path.with_extension(Self::DRAFT);
        let mut file = fs::File::options()
            .create_new(true)
            .write(true)
            .open(&draft)
            .map_err(failed)?;
        file.write_all(text.as_bytes())
            .and_then(|()| fs::rename(&draft, path))
            .map_err(failed)
    }

    /// Removes drafts of entries whose writer was killed.
    ///
    /// # Errors
    /// If another process keeps the folder locked, or it cannot be written to.
    pub fn remove_drafts(&self) -> Result<(), ShellError> {
        // With the lock, no other process is writing an entry.
        let _lock = self.lock()?;
        let files = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        files
            .map(|file| file.path())
            .filter(|path| path.extension().is_some_and(|e| e == Self::DRAFT))
            .try_for_each(|path| self.remove(&path))
    }

    /// Removes the shell's file.
    pub fn remove(&self, path: &Path) -> Result<(), ShellError> {
        match fs::remove_file(path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(ShellError::state(path, e)),
            _ => Ok(()),
        }
    }

    fn lock(&self) -> Result<Flock<fs::File>, ShellError> {
        let path = self.folder.join(Self::LOCK);
        let failed = |e: io::Error| ShellError::state(&path, e);
        let mut file = fs::File::options()
            .create(true)
            .append(true)
            .custom_flags(libc::O_NOFOLLOW)
            .open(&path)
            .map_err(failed)?;
        for _ in 0..Self::LOCK_TRIES {
            match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
                Ok(lock) => return Ok(lock),
                Err((again, _)) => file = again,
            }
            std::thread::sleep(Self::LOCK_POLL);
        }
        Err(failed(io::Error::other("another process keeps it locked")))
    }
}

impl Claim {
    /// The entry's file, which is also the shell's name.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        // What is left is what `--clean` removes.
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::super::clean::clean;
    use super::*;
    use std::os::unix::fs::symlink;

    fn request(outside: u64, hosts: &[u64]) -> Request {
        Request {
            hosts: hosts.to_vec(),
            far: None,
            outside,
            taken: Vec::new(),
            command: "sh".to_owned(),
        }
    }

    fn registry(name: &str) -> Registry {
        let folder = env::temp_dir().join(format!("headway-test-{name}-{}", Pid::this()));
        let _ = fs::remove_dir_all(&folder);
        let folder = folder::made(folder).unwrap();
        Registry { folder }
    }

    #[test]
    fn shells_side_by_side_and_inside_take_addresses_of_their_own() {
        let registry = registry("slices");
        // Entries of one process share a file: keep a copy of each claim's entry under another
        // name.
        let keep = |claim: Claim, name: &str| {
            fs::copy(claim.path(), registry.folder.join(name)).unwrap();
            claim.slice.to_string()
        };
        let first = keep(registry.claim(request(1, &[11, 12])).unwrap(), "a.json");
        let second = keep(registry.claim(request(1, &[21])).unwrap(), "b.json");
        // It is started on the second host of the first shell: every other slot.
        let claim = registry.claim(request(12, &[31])).unwrap();
        assert_eq!(claim.peers.len(), 2);
        let inside = keep(claim, "c.json");
        let deeper = keep(registry.claim(request(31, &[41])).unwrap(), "d.json");
        let deepest = registry.claim(request(41, &[51])).unwrap();
        assert_eq!(first, "100.64.0.0/16");
        assert_eq!(second, "100.65.0.0/16");
        assert_eq!(inside, "100.64.32.0/20");
        assert_eq!(deeper, "100.64.33.0/24");
        assert_eq!(deepest.slice.to_string(), "100.64.33.16/28");
        assert_eq!(keep(deepest, "e.json"), "100.64.33.16/28");
        let refused = registry.claim(request(51, &[61])).unwrap_err();
        assert!(refused.to_string().contains("too deeply"), "{refused}");
        fs::remove_dir_all(&registry.folder).unwrap();
    }

    #[test]
    fn live_addresses_are_avoided_and_dead_ones_are_reused() {
        let registry = registry("taken");
        let taken = vec!["100.64.9.9".parse().unwrap()];
        let claim = registry
            .claim(Request {
                taken,
                ..request(1, &[11])
            })
            .unwrap();
        assert_eq!(claim.slice.to_string(), "100.65.0.0/16");
        // The addresses of a killed shell are free, although its entry still exists.
        let (path, entry) = registry.entries().pop().unwrap();
        registry
            .write(
                &path,
                &Entry {
                    started: entry.started + 1,
                    ..entry
                },
            )
            .unwrap();
        assert!(!registry.entries()[0].1.is_alive());
        fs::rename(&path, registry.folder.join("dead.json")).unwrap();
        let claim = registry.claim(request(1, &[11; 64])).unwrap();
        assert_eq!(claim.slice.to_string(), "100.64.0.0/16");
        drop(claim);
        assert_eq!(registry.entries().len(), 1);
        fs::remove_dir_all(&registry.folder).unwrap();
    }

    #[test]
    fn a_shell_in_another_pid_namespace_is_left_alone() {
        let registry = registry("pids");
        let claim = registry.claim(request(1, &[11])).unwrap();
        let (path, mut entry) = registry.entries().pop().unwrap();
        entry.started += 1;
        assert!(!entry.is_alive());
        entry.pid_namespace += 1;
        assert!(entry.is_alive());
        registry.write(&path, &entry).unwrap();
        assert!(clean(&registry, |_| true).unwrap().is_empty());
        assert_eq!(registry.entries().len(), 1);
        drop(claim);
        fs::remove_dir_all(&registry.folder).unwrap();
    }

    #[test]
    fn nothing_is_written_through_a_link() {
        let registry = registry("links");
        let target = registry.folder.join("target");
        fs::write(&target, "mine").unwrap();
        let own = Process::current().unwrap();
        let draft = format!("{}-{}.draft", own.pid, own.started);
        symlink(&target, registry.folder.join(draft)).unwrap();
        assert!(registry.claim(request(1, &[11])).is_err());
        assert_eq!(fs::read_to_string(&target).unwrap(), "mine");
        // The draft of a killed writer is removed.
        clean(&registry, |_| true).unwrap();
        registry.claim(request(1, &[11])).unwrap();
        fs::remove_file(registry.folder.join(Registry::LOCK)).unwrap();
        symlink(&target, registry.folder.join(Registry::LOCK)).unwrap();
        assert!(registry.claim(request(1, &[11])).is_err());
        fs::remove_dir_all(&registry.folder).unwrap();
    }
}
