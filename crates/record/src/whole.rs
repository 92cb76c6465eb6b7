//! Files that are there whole or not at all, and that destroy nothing of the user's.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Where a file is written until it is whole, and where it goes then.
///
/// A link stays a link: its target is replaced. A file that was there keeps its mode and owner. A
/// device or a pipe is written into, for nothing could replace it.
#[derive(Debug)]
pub(crate) struct Whole {
    target: PathBuf,
    /// Beside the target; none where that is written into.
    part: Option<PathBuf>,
}

impl Whole {
    pub(crate) fn of(path: &Path) -> Whole {
        let target = target_of(path);
        let is_special = fs::metadata(&target).is_ok_and(|m| !m.is_file() && !m.is_dir());
        let part = || {
            let mut name = target.as_os_str().to_owned();
            name.push(".part");
            PathBuf::from(name)
        };
        Whole {
            part: (!is_special).then(part),
            target,
        }
    }

    /// Where it is to be written.
    pub(crate) fn place(&self) -> &Path {
        self.part.as_deref().unwrap_or(&self.target)
    }

    /// It is whole, and has its name from now on.
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
        // A power loss leaves the old file or the new.
        fs::File::open(part)?.sync_all()?;
        fs::rename(part, &self.target)
    }

    /// It will not become whole.
    pub(crate) fn drop_part(&self) {
        if let Some(part) = &self.part {
            // What is left has a name that says so.
            let _ = fs::remove_file(part);
        }
    }
}

/// What a link names, whether that is there yet or not; else the path itself.
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
    use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};

    fn written(path: &Path) -> io::Result<()> {
        let whole = Whole::of(path);
        fs::write(whole.place(), "new")?;
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
    fn a_device_is_written_into() -> io::Result<()> {
        written(Path::new("/dev/null"))?;
        assert!(fs::metadata("/dev/null")?.file_type().is_char_device());
        assert_eq!(
            Whole::of(Path::new("/dev/null")).place(),
            Path::new("/dev/null")
        );
        Ok(())
    }
}
