//! Traces are found by name, in order, and never replaced by others.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use headway_scenario::TraceStore;

/// A folder of this test's own, empty.
fn folder(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

#[test]
fn the_first_folder_that_has_it_gives_it_and_it_is_read_once() {
    let (first, second) = (folder("first"), folder("second"));
    fs::write(first.join("both"), "1\n").unwrap();
    fs::write(second.join("both"), "2\n").unwrap();
    fs::write(second.join("only"), "3\n").unwrap();
    let store = TraceStore::of([first.clone(), second.clone()]);
    assert_eq!(store.find("both"), Some(first.join("both")));
    assert_eq!(store.load("only").unwrap().opportunities(), [3]);
    let trace = store.load("both").unwrap();
    fs::remove_file(first.join("both")).unwrap();
    assert!(Arc::ptr_eq(&trace, &store.load("both").unwrap()));
    let path = second.join("only").display().to_string();
    assert_eq!(store.load(&path).unwrap().opportunities(), [3]);
}

#[test]
fn what_is_missing_or_damaged_is_said_in_one_line() {
    let only = folder("damaged");
    let store = TraceStore::of([only.clone(), PathBuf::from("elsewhere")]);
    assert_eq!(
        store.load("LTE").unwrap_err().to_string(),
        format!(
            "trace 'LTE' not found (looked in {}, elsewhere); get it with `headway traces fetch mahimahi`",
            only.display()
        )
    );
    fs::write(only.join("bad"), "5\n4\n").unwrap();
    assert_eq!(
        store.load("bad").unwrap_err().to_string(),
        format!(
            "{}: line 2: 4 ms comes after 5 ms; times must not decrease",
            only.join("bad").display()
        )
    );
    fs::create_dir(only.join("folder")).unwrap();
    assert!(
        store
            .load("folder")
            .unwrap_err()
            .to_string()
            .starts_with("trace 'folder' not found")
    );
}
