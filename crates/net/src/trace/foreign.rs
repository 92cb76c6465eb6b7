//! Recognises files that are not traces, by how they begin.

/// Signatures at a file's beginning, the kind of file, and the program that unpacks it.
const PACKED: [(&[u8], &str, &str); 6] = [
    (b"\x1f\x8b", "gzip", "zcat"),
    (b"BZh", "bzip2", "bzcat"),
    (b"\xfd7zXZ", "xz", "xzcat"),
    (b"\x28\xb5\x2f\xfd", "zstd", "zstdcat"),
    (b"\x04\x22\x4d\x18", "lz4", "lz4cat"),
    (b"\x1f\x9d", "compress", "zcat"),
];

const CAPTURE: &str = "a packet capture; sum up its bytes by the second, as `tshark -q -z io,stat,1` does, \
     and make a table of times and rates of it";
const MATLAB: &str =
    "a MATLAB file; write times and rates as CSV in MATLAB: writematrix([t rate], 'rates.csv')";
const UTF_16: &str = "UTF-16; save it as UTF-8, as `iconv -f UTF-16 -t UTF-8 FILE > NEW` does";
const PAGE: &str = "a web page; download the file itself, for GitHub by its button \"Raw\"";
const SPREADSHEET: &str = "an old spreadsheet; save it as CSV";
const JSON: &str = "JSON; docs/traces.md has a command that makes a table of it";
const LFS: &str = "a pointer of Git LFS and not the file; get the file with `git lfs pull`";

/// Signatures at a file's beginning, the kind of file, and what to do.
const SIGNS: [(&[u8], &str); 20] = [
    (
        b"PK\x03\x04",
        "a zip archive or a spreadsheet; unpack it with `unzip`, or save the spreadsheet as CSV",
    ),
    (b"7z\xbc\xaf", "a 7z archive; unpack it with `7z x FILE`"),
    (b"\xd0\xcf\x11\xe0", SPREADSHEET),
    (b"\xd4\xc3\xb2\xa1", CAPTURE),
    (b"\xa1\xb2\xc3\xd4", CAPTURE),
    (b"\x4d\x3c\xb2\xa1", CAPTURE),
    (b"\xa1\xb2\x3c\x4d", CAPTURE),
    (b"\x0a\x0d\x0d\x0a", CAPTURE),
    (b"MATLAB ", MATLAB),
    (b"\x89HDF", "HDF5; write its times and rates as CSV"),
    (b"PAR1", "Parquet; write its times and rates as CSV"),
    (b"ARROW1", "Arrow; write its times and rates as CSV"),
    (b"\x93NUMPY", "a NumPy array; write it with numpy.savetxt"),
    (
        b"SQLite format 3",
        "an SQLite database; write its times and rates as CSV",
    ),
    (b"%PDF", "a PDF; get the table itself"),
    (b"\x7fELF", "a program"),
    (b"\xff\xfe", UTF_16),
    (b"\xfe\xff", UTF_16),
    (b"version https://git-lfs", LFS),
    (b"{\\rtf", "rich text; save it as plain text"),
];

/// The kind of file, by its beginning (a few kB are enough), and what to do with it; `None` if it
/// may be a text of numbers.
pub fn looks_like(head: &[u8]) -> Option<String> {
    for (sign, name, tool) in PACKED {
        if head.starts_with(sign) {
            return Some(format!(
                "a file packed by {name}; unpack it: `{tool} FILE | headway traces convert - OUT` takes a table, \
                 `{tool} FILE > TRACE` makes a file of a trace"
            ));
        }
    }
    let sign = SIGNS.iter().find(|(sign, _)| head.starts_with(sign));
    sign.map(|(_, what)| *what)
        .or_else(|| {
            (head.get(257..262) == Some(b"ustar"))
                .then_some("a tar archive; unpack it: `tar xf FILE`")
        })
        .or_else(|| binary(head))
        .or_else(|| text(head))
        .map(str::to_owned)
}

fn binary(head: &[u8]) -> Option<&'static str> {
    let zeros = head.iter().filter(|&&b| b == 0).count();
    match (zeros, head) {
        (0, _) => None,
        // UTF-16: a letter or digit alternates with a zero.
        (_, [0, a, 0, ..] | [a, 0, _, 0, ..] | [a, 0])
            if a.is_ascii() && *a != 0 && 3 * zeros > head.len() =>
        {
            Some(UTF_16)
        }
        _ => Some("a binary file; give a text of numbers"),
    }
}

fn text(head: &[u8]) -> Option<&'static str> {
    let head = head
        .strip_prefix(b"\xef\xbb\xbf")
        .unwrap_or(head)
        .trim_ascii_start();
    let word: Vec<u8> = head.iter().take(16).map(u8::to_ascii_lowercase).collect();
    if word.starts_with(b"<!doctype html")
        || word.starts_with(b"<html")
        || word.starts_with(b"<head")
    {
        return Some(PAGE);
    }
    if word.starts_with(b"<") {
        return Some("XML; write its times and rates as CSV");
    }
    let (first, rest) = head.split_first()?;
    let next = rest.trim_ascii_start().first();
    let is_json = match first {
        b'{' => next.is_none_or(|b| matches!(b, b'"' | b'}')),
        b'[' => next.is_none_or(|b| matches!(b, b'{' | b'[' | b'"' | b']' | b'-' | b'0'..=b'9')),
        _ => false,
    };
    is_json.then_some(JSON)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_file_kind_is_recognised_by_its_beginning() {
        for (head, says) in [
            (
                &b"\x1f\x8b\x08\0rest"[..],
                "`zcat FILE | headway traces convert - OUT`",
            ),
            (b"\xfd7zXZ\0", "`xzcat FILE |"),
            (b"PK\x03\x04\x14\0", "zip archive or a spreadsheet"),
            (b"\xd4\xc3\xb2\xa1\x02\0\x04\0", "packet capture"),
            (b"\x0a\x0d\x0d\x0a\x1c\0", "packet capture"),
            (b"MATLAB 5.0 MAT-file", "writematrix"),
            (b"\xff\xfe1\0\n\0", "UTF-16"),
            (b"1\0\n\x002\0\n\0", "UTF-16"),
            (b"\x001\0\n\x002\0\n", "UTF-16"),
            (b"1\n2\n\0\0\0", "binary"),
            (b"\n\n<!DOCTYPE HTML><html>", "web page"),
            (b"<?xml version=\"1.0\"?>", "XML"),
            (b"\xef\xbb\xbf[ {\"duration_ms\": 1}]", "JSON"),
            (b"{\"a\": 1}", "JSON"),
            (
                b"version https://git-lfs.github.com/spec/v1",
                "git lfs pull",
            ),
        ] {
            let said = looks_like(head).unwrap_or_default();
            assert!(said.contains(says), "{}: {said}", head.escape_ascii());
        }
        for head in [
            "1\n2\n",
            "0.00 4.1\n",
            "time_s,rate_mbps\n",
            "[link]\n",
            "# a log\n",
            "",
            "\u{feff}1\n",
        ] {
            assert_eq!(looks_like(head.as_bytes()), None, "{head}");
        }
    }
}
