//! Writes files whole or not at all, and destroys nothing that the user has.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// The path where a file is written until it is whole, and its final path.
///
/// A link stays a link: its target is replaced. An existing file keeps its mode and owner. A
/// device, a pipe or an open stream is written directly, because it cannot be replaced. So is a
/// file that is mounted by itself, or whose folder cannot be written.
#[derive(Debug)]
pub(crate) struct Whole {
    target: PathBuf,
    /// The temporary file in the folder of the target; `None` if the target is written directly.
    part: Option<PathBuf>,
}

impl Whole {
    /// Returns this and the file to write to.
    pub(crate) fn create(path: &Path) -> io::Result<(Whole, File)> {
        let target = target_of(path);
        let into = |part, file| {
            (
                Whole {
                    target: target.clone(),
                    part,
                },
                file,
            )
        };
        if let Some(stream) = own_stream(path) {
            return Ok(into(None, stream?));
        }
        let there = fs::metadata(&target);
        if there.as_ref().is_ok_and(|m| !m.is_file() && !m.is_dir()) {
            return Ok(into(None, File::create(&target)?));
        }
        let mut name = target.as_os_str().to_owned();
        name.push(".part");
        let part = PathBuf::from(name);
        match File::create(&part) {
            Err(e) if is_closed(&e) && there.is_ok_and(|m| m.is_file()) => {
                Ok(into(None, File::create(&target)?))
            }
            made => Ok(into(Some(part), made?)),
        }
    }

    /// The file is whole: gives it its final name.
    pub(crate) fn keep(&self) -> io::Result<()> {
        let Some(part) = &self.part else {
            return Ok(());
        };
        if let Ok(before) = fs::metadata(&self.target) {
            #[cfg(unix)]
            {
                use std::os::unix::fs::{MetadataExt, chown};
                // Only root may give a file away.
                let _ = chown(part, Some(before.uid()), Some(before.gid()));
            }
            fs::set_permissions(part, before.permissions())?;
        }
        // After a power loss, either the old file or the new one is there.
        File::open(part)?.sync_all()?;
        match fs::rename(part, &self.target) {
            Err(e) if is_mounted(&e) && self.target.is_file() => {
                copy_into(part, &self.target)?;
                fs::remove_file(part)
            }
            renamed => renamed,
        }
    }

    /// Removes the temporary file, because the file will not become whole.
    pub(crate) fn drop_part(&self) {
        if let Some(part) = &self.part {
            // If it remains, its name shows that it is not whole.
            let _ = fs::remove_file(part);
        }
    }
}

/// Is it the error of a folder in which no file can be made?
fn is_closed(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem
    )
}

/// Is it the error of a file that is mounted by itself, which can be written but not replaced?
fn is_mounted(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::ResourceBusy | ErrorKind::CrossesDevices
    )
}

fn copy_into(part: &Path, target: &Path) -> io::Result<()> {
    let mut to = OpenOptions::new().write(true).truncate(true).open(target)?;
    io::copy(&mut File::open(part)?, &mut to)?;
    to.sync_all()
}

/// The open stream of this process that `path` names, directly or by a link: `/dev/stdout`,
/// `/dev/stderr`, `/dev/fd/N`, `/proc/self/fd/N`. `None` for any other file.
///
/// If it were opened again, it would be written from its beginning, over earlier output.
#[cfg(unix)]
pub fn own_stream(path: &Path) -> Option<io::Result<File>> {
    use std::os::fd::BorrowedFd;

    let number = descriptor_of(path)?;
    #[allow(unsafe_code)]
    // SAFETY: the descriptor is duplicated at once; if nothing is open under that number, this
    // fails.
    let stream = unsafe { BorrowedFd::borrow_raw(number) }.try_clone_to_owned();
    Some(stream.map(File::from))
}

/// Other systems have no such streams.
#[cfg(not(unix))]
pub fn own_stream(_: &Path) -> Option<io::Result<File>> {
    None
}

#[cfg(unix)]
fn descriptor_of(path: &Path) -> Option<i32> {
    let own = format!("/proc/{}/fd", std::process::id());
    let folders = [
        "/dev/fd",
        "/proc/self/fd",
        "/proc/thread-self/fd",
        own.as_str(),
    ];
    let mut path = std::path::absolute(path).ok()?;
    for _ in 0..40 {
        match path.to_str() {
            Some("/dev/stdin") => return Some(0),
            Some("/dev/stdout") => return Some(1),
            Some("/dev/stderr") => return Some(2),
            _ => (),
        }
        let folder = path.parent()?;
        if folders.iter().any(|one| folder == Path::new(one)) {
            let number = path.file_name()?.to_str()?.parse();
            return number.ok().filter(|number| *number >= 0);
        }
        path = folder.join(fs::read_link(&path).ok()?);
    }
    None
}

/// The target of a link, even if it does not exist yet; else the path itself.
fn target_of(path: &Path) -> PathBuf {
    let linked = || {
        let to = fs::read_link(path).ok()?;
        Some(path.parent()?.join(to))
    };
    fs::canonicalize(path)
        .ok()
        .or_else(linked)
        .unwrap_or_else(|| path.to_owned())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::io::Write;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};

    fn written(path: &Path) -> io::Result<()> {
        let (whole, mut file) = Whole::create(path)?;
        file.write_all(b"new")?;
        whole.keep()
    }

    #[test]
    fn links_and_modes_stay() -> io::Result<()> {
        let folder = std::env::temp_dir().join(format!("headway-whole-{}", std::process::id()));
        fs::create_dir(&folder)?;
        let target = folder.join("target");
        for name in ["link", "dangling"] {
            symlink(&target, folder.join(name))?;
        }
        written(&folder.join("dangling"))?;
        assert_eq!(fs::read_to_string(&target)?, "new");
        fs::write(&target, "old")?;
        fs::set_permissions(&target, Permissions::from_mode(0o640))?;
        written(&folder.join("link"))?;
        assert!(fs::symlink_metadata(folder.join("link"))?.is_symlink());
        assert_eq!(fs::read_to_string(&target)?, "new");
        assert_eq!(fs::metadata(&target)?.permissions().mode() & 0o777, 0o640);
        assert_eq!(fs::read_dir(&folder)?.count(), 3);
        fs::remove_dir_all(&folder)
    }

    #[test]
    fn a_device_is_written_directly() -> io::Result<()> {
        written(Path::new("/dev/null"))?;
        assert!(fs::metadata("/dev/null")?.file_type().is_char_device());
        assert!(Whole::create(Path::new("/dev/null"))?.0.part.is_none());
        Ok(())
    }

    /// The stream's offset is shared, so nothing of other writers is overwritten.
    #[test]
    fn an_open_stream_is_written_at_its_offset() -> io::Result<()> {
        let path = std::env::temp_dir().join(format!("headway-stream-{}", std::process::id()));
        let mut shared = File::create(&path)?;
        shared.write_all(b"theirs, ")?;
        let number = shared.as_raw_fd();
        let link = path.with_extension("link");
        symlink(format!("/dev/fd/{number}"), &link)?;
        written(Path::new(&format!("/proc/self/fd/{number}")))?;
        written(&link)?;
        shared.write_all(b", theirs")?;
        assert_eq!(fs::read_to_string(&path)?, "theirs, newnew, theirs");
        fs::remove_file(&link)?;
        fs::remove_file(&path)?;
        assert_eq!(descriptor_of(Path::new("/dev/stdout")), Some(1));
        for other in ["/dev/null", "/dev/fd/x", "/dev/fd/-1", "/dev/fd", "stdout"] {
            assert_eq!(descriptor_of(Path::new(other)), None, "{other}");
        }
        Ok(())
    }

    #[test]
    fn files_that_cannot_be_replaced_are_written_directly() -> io::Result<()> {
        let folder = std::env::temp_dir().join(format!("headway-into-{}", std::process::id()));
        fs::create_dir(&folder)?;
        let (part, target) = (folder.join("part"), folder.join("target"));
        fs::write(&part, "new")?;
        fs::write(&target, "an old one, and longer")?;
        copy_into(&part, &target)?;
        assert_eq!(fs::read_to_string(&target)?, "new");
        fs::remove_dir_all(&folder)
    }
}
