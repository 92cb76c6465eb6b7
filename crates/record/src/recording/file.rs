//! The file of a recording.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use crate::own_stream;

/// A file that is written as the run goes on, in bounded memory. Its errors name it.
#[derive(Debug)]
pub struct File {
    name: String,
    to: BufWriter<fs::File>,
}

impl File {
    /// Creates the file and its folders. An earlier file is overwritten; an open stream is written
    /// to.
    ///
    /// # Errors
    /// If that is not possible.
    pub fn create(path: &Path) -> io::Result<File> {
        let create = || own_stream(path).unwrap_or_else(|| fs::File::create(path));
        let created = make_folders(path).and_then(|()| create());
        let created = created.map_err(|e| naming(&path.display().to_string(), &e))?;
        Ok(File::over(path, created))
    }

    /// Wraps an open file with this path.
    pub(super) fn over(path: &Path, file: fs::File) -> File {
        File {
            to: BufWriter::with_capacity(1 << 16, file),
            name: path.display().to_string(),
        }
    }
}

/// Makes the file's folders.
pub(super) fn make_folders(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), fs::create_dir_all)
}

impl Write for File {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.to.write(bytes).map_err(|e| naming(&self.name, &e))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush().map_err(|e| naming(&self.name, &e))
    }
}

#[cold]
pub(super) fn naming(name: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{name}: {error}"))
}

/// A file name for `text`: a colon becomes a comma, and characters that a file system may refuse
/// become `%` and their bytes in hexadecimal. Different texts have different names, except for
/// colon and comma.
pub fn safe_name(text: &str) -> String {
    let mut name = String::with_capacity(text.len());
    for (i, byte) in text.bytes().enumerate() {
        match byte {
            b':' => name.push(','),
            b'.' if i == 0 => name.push_str("%2e"),
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'_' | b'-' | b'+' | b'=' | b',' => {
                name.push(char::from(byte));
            }
            _ => name.push_str(&format!("%{byte:02x}")),
        }
    }
    if name.is_empty() {
        "%".to_owned()
    } else {
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_safe() {
        assert_eq!(
            safe_name("fixed-window:window=2.5"),
            "fixed-window,window=2.5"
        );
        assert_eq!(safe_name("../a b\u{e9}"), "%2e.%2fa%20b%c3%a9");
        assert_eq!(safe_name(""), "%");
    }

    #[test]
    fn errors_name_the_file() {
        let path = std::env::temp_dir().join("headway-recording-file");
        std::fs::write(&path, "not a folder").expect("a file");
        let error = File::create(&path.join("inside")).expect_err("no folder");
        assert!(
            error
                .to_string()
                .contains("headway-recording-file/inside: "),
            "{error}"
        );
        // Every write to it fails, as on a full disk.
        let mut full = File::create(Path::new("/dev/full")).expect("Linux has it");
        let error = full.write_all(&[0; 1 << 20]).expect_err("no room");
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert!(error.to_string().starts_with("/dev/full: "), "{error}");
    }
}
