//! Programs that outlive their agent: what is pinned in a bpffs, and whether an agent serves it.
//!
//! `FOLDER/NAME` belongs to the controller of that name, and its agent has locked it. It contains
//! one folder with the pins. The name of that folder, such as `headway_owl-10-1a2b3c4d5e6f`, gives
//! the program, the ABI, and the digest of the object (decision 48).

use std::fs::{self, DirBuilder, File, Metadata, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time;

use headway_cc::Duration;
use headway_kernel::abi;
use headway_policy::model::sha256;
use libbpf_rs::{Link, MapHandle};
use nix::mount::{MsFlags, mount};
use nix::sys::statfs::{BPF_FS_MAGIC, FsType, SYSFS_MAGIC, statfs};
use nix::unistd::geteuid;

use super::Controller;
use crate::error::{Error, Result};
use crate::system::{clock, kernel};

/// The pin of the link. It is made last and removed first.
const LINK: &str = "link";
/// The longest wait for an unpinned link, which the kernel closes in the background.
const GONE_WITHIN: Duration = Duration::from_secs(20);
/// How long an agent tries to lock a controller's folder: `headwayd status` locks it for a moment,
/// to find out whether an agent serves it.
const TRIES_FOR: Duration = Duration::from_secs(1);
const LOOKS_EACH: time::Duration = time::Duration::from_millis(5);

/// The first letters of an object's digest.
pub fn digest(object: &[u8]) -> String {
    sha256(object)[..12].to_owned()
}

/// A folder of a bpffs, with a folder for each controller that is kept.
#[derive(Clone, Debug)]
pub struct Folder(PathBuf);

/// Why a controller cannot be pinned or taken.
#[derive(Debug)]
pub enum Refusal {
    /// Nothing can be pinned in this folder.
    Unusable(String),
    /// Another agent serves the controller.
    Taken,
}

impl Folder {
    /// The folder, unless an option names another.
    pub const USUAL: &str = "/sys/fs/bpf/headway";

    pub fn new(path: &Path) -> Folder {
        Folder(path.to_owned())
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The names of the controllers that have a folder here. What other programs have pinned here
    /// is left out.
    ///
    /// # Errors
    /// One line, if this user may not read the folder.
    pub fn names(&self) -> Result<Vec<String>> {
        let failed = |e: io::Error| {
            let remedy = match e.kind() {
                io::ErrorKind::PermissionDenied => "; run it as root (sudo)",
                _ => "",
            };
            Error::Failed(format!("{}: {e}{remedy}", self.0.display()))
        };
        let entries = match fs::read_dir(&self.0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(failed)?,
        };
        let own = entries.flatten().filter(|entry| is_own(&entry.path()));
        let name = |entry: fs::DirEntry| name_of(&entry.file_name().to_string_lossy());
        let mut names: Vec<_> = own.map(name).collect();
        names.sort();
        Ok(names)
    }

    /// The version that is pinned of the controller of that name.
    pub fn find(&self, name: &str) -> Option<Version> {
        let mut kept = versions(&self.0.join(file_name(name))).into_iter();
        kept.find_map(|one| one.is_whole.then_some(one.version))
    }

    fn is_in_bpffs(&self) -> bool {
        let there = self.0.ancestors().find(|path| path.exists());
        is_of(there.unwrap_or(Path::new("/")), BPF_FS_MAGIC)
    }

    /// Takes the controller of that name for this process. Mounts a bpffs in the usual place if
    /// there is none.
    pub fn claim(&self, name: &str) -> std::result::Result<ControllerPins, Refusal> {
        if !kernel::has_links() {
            let why = "Linux has links of controllers, which can be pinned, since 6.4";
            return Err(Refusal::Unusable(why.to_owned()));
        }
        if !self.is_in_bpffs() && self.0 == Path::new(Folder::USUAL) {
            mount_bpffs();
        }
        if !self.is_in_bpffs() {
            return Err(Refusal::Unusable(format!(
                "{} is not in a bpffs; mount one: mount -t bpf bpf /sys/fs/bpf",
                self.0.display()
            )));
        }
        self.take(name)
    }

    /// Is the controller pinned, and does no agent serve it?
    pub fn is_left(&self, name: &str) -> bool {
        self.find(name).is_some() && matches!(self.try_take(name), Ok(Some(_)))
    }

    /// Takes the folder of that name. If another process still has it after a second, that is an
    /// agent.
    fn take(&self, name: &str) -> std::result::Result<ControllerPins, Refusal> {
        let until = clock::now() + TRIES_FOR;
        loop {
            if let Some(pins) = self.try_take(name)? {
                return Ok(pins);
            }
            if clock::now() > until {
                return Err(Refusal::Taken);
            }
            sleep(LOOKS_EACH);
        }
    }

    /// Tries to take the folder of that name; `None` if another process has it, or has just removed
    /// it.
    fn try_take(&self, name: &str) -> std::result::Result<Option<ControllerPins>, Refusal> {
        let failed = |path: &Path| {
            let path = path.display().to_string();
            move |error: io::Error| Refusal::Unusable(format!("{path}: {error}"))
        };
        let own = self.0.join(file_name(name));
        for folder in [&self.0, &own] {
            match DirBuilder::new().mode(0o700).create(folder) {
                Err(error) if is_gone(&error) && *folder == own => return Ok(None),
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(failed(folder)(error));
                }
                _ => {}
            }
            let is = match fs::symlink_metadata(folder) {
                Err(error) if is_gone(&error) => return Ok(None),
                is => is.map_err(failed(folder))?,
            };
            if !is.is_dir() || is.uid() != geteuid().as_raw() || is.mode() & 0o022 != 0 {
                return Err(Refusal::Unusable(format!(
                    "{} must be a folder of this user that no other user may write",
                    folder.display()
                )));
            }
        }
        let lock = match File::open(&own) {
            Err(error) if is_gone(&error) => return Ok(None),
            lock => lock.map_err(failed(&own))?,
        };
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(failed(&own)(error)),
        }
        // Another process may have removed the folder before this one had the lock.
        let inode = |is: io::Result<Metadata>| is.map(|is| is.ino()).ok();
        let is_there = inode(lock.metadata()) == inode(fs::symlink_metadata(&own));
        Ok(is_there.then(|| ControllerPins {
            name: name.to_owned(),
            folder: own,
            _lock: lock,
        }))
    }
}

fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
}

fn is_of(path: &Path, kind: FsType) -> bool {
    statfs(path).is_ok_and(|found| found.filesystem_type() == kind)
}

/// Mounts a bpffs at /sys/fs/bpf, as systemd and bpftool do, if nothing is mounted there. The
/// caller checks whether that worked.
fn mount_bpffs() {
    if !is_of("/sys/fs/bpf".as_ref(), SYSFS_MAGIC) {
        return;
    }
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    match mount(
        Some("bpf"),
        "/sys/fs/bpf",
        Some("bpf"),
        flags,
        Some("mode=0700"),
    ) {
        Ok(()) => tracing::debug!("a bpffs is mounted at /sys/fs/bpf, to pin the programs"),
        Err(error) => tracing::debug!(%error, "no bpffs could be mounted at /sys/fs/bpf"),
    }
}

/// Which build of which program is pinned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// The name of the program, which may differ from the controller's name in the kernel.
    pub program: String,
    pub abi: u16,
    /// The digest of its object.
    pub digest: String,
}

impl Version {
    /// The version of this build.
    pub fn own(controller: Controller) -> Version {
        Version {
            program: controller.name().to_owned(),
            abi: abi::VERSION,
            digest: digest(controller.object()),
        }
    }

    /// Can an agent of this build adopt it?
    fn fits(&self, controller: Controller) -> bool {
        self.program == controller.name() && self.abi == abi::VERSION
    }

    fn folder(&self) -> String {
        format!("{}-{}-{}", self.program, self.abi, self.digest)
    }

    fn read(folder: &str) -> Option<Version> {
        let mut parts = folder.rsplitn(3, '-');
        let (digest, abi, program) = (parts.next()?, parts.next()?, parts.next()?);
        if !Controller::ALL.iter().any(|c| c.name() == program) {
            return None;
        }
        Some(Version {
            program: program.to_owned(),
            abi: abi.parse().ok()?,
            digest: digest.to_owned(),
        })
    }
}

/// A folder of pins.
struct Found {
    folder: PathBuf,
    version: Version,
    /// Does it have its last pin?
    is_whole: bool,
}

/// The folders of pins in a controller's folder.
fn versions(own: &Path) -> Vec<Found> {
    let entries = fs::read_dir(own).into_iter().flatten().flatten();
    let found = entries.filter_map(|entry| {
        let version = Version::read(&entry.file_name().to_string_lossy())?;
        let folder = entry.path();
        let is_whole = folder.join(LINK).exists();
        Some(Found {
            folder,
            version,
            is_whole,
        })
    });
    found.collect()
}

/// Is it a controller's folder, which contains only folders of pins?
fn is_own(folder: &Path) -> bool {
    fs::read_dir(folder).is_ok_and(|entries| entries.count() == versions(folder).len())
}

/// The folder's name for a controller: names in a bpffs have no dots, and controllers' names no
/// '%'.
fn file_name(name: &str) -> String {
    name.replace('.', "%")
}

fn name_of(file: &str) -> String {
    file.replace('%', ".")
}

/// The folder of one controller, which this process has locked. Dropping it removes an empty folder
/// and the lock.
#[derive(Debug)]
pub struct ControllerPins {
    name: String,
    folder: PathBuf,
    _lock: File,
}

impl ControllerPins {
    /// The pins, if an agent of this build can adopt them.
    pub fn find(&self, controller: Controller) -> Option<Pins> {
        let mut kept = versions(&self.folder).into_iter();
        let found = kept.find(|one| one.is_whole && one.version.fits(controller));
        found.map(|one| Pins {
            folder: one.folder,
            version: one.version,
        })
    }

    /// Pins a link and its maps.
    ///
    /// # Errors
    /// One line with the cause. Nothing is pinned then.
    pub fn keep(
        &self,
        version: &Version,
        maps: &mut [(&'static str, MapHandle)],
        link: &mut Link,
    ) -> Result<()> {
        let folder = self.folder.join(version.folder());
        let pin_all = |maps: &mut [(&'static str, MapHandle)], link: &mut Link| {
            let made = DirBuilder::new().mode(0o700).create(&folder);
            made.map_err(|e| e.to_string())?;
            for (name, map) in maps {
                map.pin(folder.join(name)).map_err(|e| e.to_string())?;
            }
            link.pin(folder.join(LINK)).map_err(|e| e.to_string())
        };
        let pinned = pin_all(maps, link);
        pinned.map_err(|why| {
            let _ = unpin(&folder);
            Error::failed(
                format!("cannot pin the programs in {}", folder.display()),
                why,
            )
        })
    }

    /// Removes all pins, and waits until the controller is not registered any more. Returns whether
    /// there were any.
    ///
    /// # Errors
    /// One line, if a pin cannot be removed, or the controller stays registered.
    pub fn clear(&self) -> Result<bool> {
        let failed = |e| Error::failed(format!("cannot unpin {}", self.folder.display()), e);
        let all = versions(&self.folder);
        for one in &all {
            unpin(&one.folder).map_err(failed)?;
        }
        let until = clock::now() + GONE_WITHIN;
        while !all.is_empty() && kernel::has_controller(&self.name) {
            if clock::now() > until {
                return Err(Error::Failed(format!(
                    "{} is still registered; find out what holds it: bpftool struct_ops, bpftool link",
                    self.name
                )));
            }
            sleep(LOOKS_EACH);
        }
        Ok(!all.is_empty())
    }
}

impl Drop for ControllerPins {
    fn drop(&mut self) {
        // Only empty folders are removed.
        let _ = fs::remove_dir(&self.folder);
        if let Some(all) = self.folder.parent() {
            let _ = fs::remove_dir(all);
        }
    }
}

/// Removes a folder of pins: first the link, then the rest.
fn unpin(folder: &Path) -> io::Result<()> {
    match fs::remove_file(folder.join(LINK)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    for entry in fs::read_dir(folder)? {
        fs::remove_file(entry?.path())?;
    }
    fs::remove_dir(folder)
}

/// The pins that an ended agent has left.
#[derive(Debug)]
pub struct Pins {
    folder: PathBuf,
    pub version: Version,
}

impl Pins {
    /// Opens a map by its pin's name.
    ///
    /// # Errors
    /// One line, if it cannot be opened.
    pub fn map(&self, name: &str) -> Result<MapHandle> {
        let path = self.folder.join(name);
        MapHandle::from_pinned_path(&path).map_err(|e| Error::failed(path.display(), e))
    }

    /// Opens the link that keeps the controller registered.
    ///
    /// # Errors
    /// One line, if it cannot be opened.
    pub fn link(&self) -> Result<Link> {
        let path = self.folder.join(LINK);
        Link::open(&path).map_err(|e| Error::failed(path.display(), e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_folder_of_pins_gives_their_version() {
        let own = Version::own(Controller::Owl);
        let folder = own.folder();
        assert!(folder.starts_with("headway_owl-12-"), "{folder}");
        assert_eq!(Version::read(&folder), Some(own.clone()));
        assert!(own.fits(Controller::Owl) && !own.fits(Controller::Rate));
        let newer = Version {
            abi: own.abi + 1,
            ..own.clone()
        };
        assert!(!newer.fits(Controller::Owl));
        // Another build has the same ABI.
        let other = Version {
            digest: "0".repeat(12),
            ..own
        };
        assert!(other.fits(Controller::Owl));
        for nonsense in ["", "headway_owl", "headway_owl-x-1", "10-1", "tc-10-1"] {
            assert_eq!(Version::read(nonsense), None, "{nonsense}");
        }
    }

    #[test]
    fn dots_in_a_name_are_replaced_in_its_file_name() {
        assert_eq!(file_name("my.owl-2"), "my%owl-2");
        assert_eq!(name_of("my%owl-2"), "my.owl-2");
    }

    #[test]
    fn pins_of_other_programs_are_left_out() {
        let all = std::env::temp_dir().join(format!("headwayd-kept-{}", std::process::id()));
        for folder in [
            "owl/headway_owl-10-0",
            "empty",
            "cilium/tc-10-0",
            "mixed/headway_owl-10-0",
        ] {
            fs::create_dir_all(all.join(folder)).expect("a folder");
        }
        File::create(all.join("mixed/other")).expect("a file");
        File::create(all.join("maps.debug")).expect("a file");
        let names = Folder::new(&all).names().expect("it can be read");
        fs::remove_dir_all(&all).expect("it is ours");
        assert_eq!(names, ["empty", "owl"]);
    }

    /// The process that has the folder for a moment may also remove it.
    #[test]
    fn taking_a_folder_waits_for_a_short_lock() {
        let all = std::env::temp_dir().join(format!("headwayd-lock-{}", std::process::id()));
        let folder = Folder::new(&all);
        let other = folder.take("owl").expect("it is free");
        let leaves = std::thread::spawn(move || {
            sleep(LOOKS_EACH * 4);
            drop(other);
        });
        let own = folder.take("owl").expect("the other leaves");
        leaves.join().expect("no panic");
        assert!(all.join("owl").exists());
        let Err(Refusal::Taken) = folder.take("owl") else {
            panic!("two processes have it")
        };
        drop(own);
        assert!(!all.exists());
    }

    #[test]
    fn a_folder_outside_a_bpffs_is_refused() {
        let folder = std::env::temp_dir().join("headwayd-no-bpffs");
        let refused = Folder::new(&folder).claim("headway_owl");
        let Err(Refusal::Unusable(why)) = refused else {
            panic!("{refused:?}")
        };
        assert!(why.contains("bpffs") || why.contains("6.4"), "{why}");
        assert!(!folder.exists());
        let folder = Folder::new(&folder);
        assert_eq!(folder.names().expect("nothing"), [] as [String; 0]);
        assert_eq!(folder.find("headway_owl"), None);
    }
}
