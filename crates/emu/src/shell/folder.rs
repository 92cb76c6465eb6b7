//! Finds the folder of the shells' entries, to which no other user can write.

use std::env;
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, access, geteuid};

use super::ShellError;

/// `around` if it is usable, else `/run/headway` for root, else a folder of the user; root of a
/// user namespace who may not write to `/run` gets one of those, too.
///
/// # Errors
/// If no folder is usable.
pub fn find(around: Option<&Path>) -> Result<PathBuf, ShellError> {
    if let Some(folder) = around.and_then(|folder| checked(folder.to_owned()).ok()) {
        return Ok(folder);
    }
    let runtime = env::var_os("XDG_RUNTIME_DIR").filter(|folder| !folder.is_empty());
    let wanted = [
        geteuid().is_root().then(|| PathBuf::from("/run/headway")),
        runtime.map(|folder| Path::new(&folder).join("headway")),
    ];
    let last = env::temp_dir().join(format!("headway-{}", geteuid()));
    let found = wanted.into_iter().flatten().find_map(|f| made(f).ok());
    found.map_or_else(|| made(last), Ok)
}

/// Makes `folder` if it does not exist.
///
/// # Errors
/// If it cannot be made, or belongs to another user.
pub fn made(folder: PathBuf) -> Result<PathBuf, ShellError> {
    match fs::DirBuilder::new().mode(0o755).create(&folder) {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => Err(refused(&folder, e)),
        _ => checked(folder),
    }
}

/// Returns `folder` if it belongs to this user. Another user may have made it, as in /tmp, or the
/// environment may name a folder of another user.
fn checked(folder: PathBuf) -> Result<PathBuf, ShellError> {
    let failed = |e: io::Error| ShellError::state(&folder, e);
    let found = fs::symlink_metadata(&folder).map_err(failed)?;
    if !found.is_dir() || found.uid() != geteuid().as_raw() {
        let what = "it is not a folder of this user's; remove it or set XDG_RUNTIME_DIR";
        return Err(failed(io::Error::other(what)));
    }
    access(&folder, AccessFlags::W_OK).map_err(|e| refused(&folder, e.into()))?;
    Ok(folder)
}

fn refused(folder: &Path, why: io::Error) -> ShellError {
    let cure = format!("{why}; set XDG_RUNTIME_DIR to a folder of your own");
    ShellError::state(folder, io::Error::other(cure))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_folder_of_another_kind_is_refused() {
        let path = env::temp_dir().join(format!("headway-test-folder-{}", std::process::id()));
        fs::write(&path, "").unwrap();
        assert!(made(path.clone()).is_err());
        fs::remove_file(&path).unwrap();
        // A link that leads to another user's folder.
        symlink(env::temp_dir(), &path).unwrap();
        let refused = made(path.clone()).unwrap_err().to_string();
        assert!(refused.contains("not a folder of this user's"), "{refused}");
        fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_folder_of_another_user_is_refused() {
        // With sudo -E, the folder in the environment is the user's.
        let path = env::temp_dir().join(format!("headway-test-owner-{}", std::process::id()));
        made(path.clone()).unwrap();
        assert_eq!(find(Some(&path)).unwrap(), path);
        if geteuid().is_root() {
            std::os::unix::fs::chown(&path, Some(1), None).unwrap();
            assert_ne!(find(Some(&path)).unwrap(), path);
        }
        fs::remove_dir(&path).unwrap();
    }
}
