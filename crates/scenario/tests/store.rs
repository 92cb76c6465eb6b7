//! Traces are found by name, in order, and never replaced by others.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use headway_scenario::{Part, Scenario, TraceStore, collection_of};

/// An empty folder of one test.
fn folder(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

#[test]
fn the_first_folder_with_a_trace_gives_it_once() {
    let (first, second) = (folder("first"), folder("second"));
    fs::write(first.join("both"), "1\n").unwrap();
    fs::write(second.join("both"), "2\n").unwrap();
    fs::write(second.join("only"), "3\n").unwrap();
    let store = TraceStore::of([first.clone(), second.clone()]);
    assert_eq!(store.find("both"), Some(first.join("both")));
    assert_eq!(
        store.load("only", Part::Whole).unwrap().opportunities(),
        [3]
    );
    let trace = store.load("both", Part::Whole).unwrap();
    fs::remove_file(first.join("both")).unwrap();
    assert!(Arc::ptr_eq(
        &trace,
        &store.load("both", Part::Whole).unwrap()
    ));
    let path = second.join("only").display().to_string();
    assert_eq!(store.load(&path, Part::Whole).unwrap().opportunities(), [3]);
}

/// Writes a scenario with this trace.
fn scenario(file: &Path, trace: &str) {
    let text = format!(
        "schema = 1\nname = \"one\"\nseconds = 1\n[bottleneck]\ntrace = \"{trace}\"\ndelay = \
         \"5ms\"\nqueue = \"100pkt\"\n"
    );
    fs::write(file, text).unwrap();
}

/// The opportunities of a scenario's trace, or the error.
fn opportunities(file: &Path, store: &TraceStore) -> Result<Vec<u32>, String> {
    let scenario = Scenario::load(&file.display().to_string()).unwrap();
    let spec = scenario.trace_specs().next().unwrap();
    let trace = scenario.load_trace(&spec, store);
    trace
        .map(|t| t.opportunities().to_vec())
        .map_err(|e| e.to_string())
}

#[test]
fn a_linked_scenario_has_its_traces_next_to_the_link_or_else_next_to_its_file() {
    let (links, files) = (folder("links"), folder("files").canonicalize().unwrap());
    let (link, store) = (
        links.join("one.toml"),
        TraceStore::of([PathBuf::from("named")]),
    );
    symlink(files.join("one.toml"), &link).unwrap();
    for (trace, more) in [("./own.down", ""), ("own.down", ", named")] {
        scenario(&files.join("one.toml"), trace);
        let _ = fs::remove_file(links.join("own.down"));
        let _ = fs::remove_file(files.join("own.down"));
        assert_eq!(
            opportunities(&link, &store).unwrap_err(),
            format!(
                "trace '{trace}' not found (looked in {}, {}{more}); no collection of `headway \
                 traces fetch` has it",
                links.display(),
                files.display()
            )
        );
        fs::write(files.join("own.down"), "1\n").unwrap();
        assert_eq!(opportunities(&link, &store), Ok(vec![1]));
        fs::write(links.join("own.down"), "2\n").unwrap();
        assert_eq!(opportunities(&link, &store), Ok(vec![2]));
    }
}

#[test]
fn a_trace_next_to_a_scenario_may_have_any_name() {
    let folder = folder("any name");
    let (file, store) = (folder.join("one.toml"), TraceStore::of([]));
    let long = "a long name, ".repeat(15);
    for name in [
        "a b.down",
        "мой линк.down",
        "2026-11-26T10:00:00.down",
        "it's.down",
        &long,
    ] {
        fs::write(folder.join(name), "1\n").unwrap();
        scenario(&file, &format!("./{name}"));
        assert_eq!(opportunities(&file, &store), Ok(vec![1]), "{name}");
        scenario(&file, &folder.join(name).display().to_string());
        assert_eq!(opportunities(&file, &store), Ok(vec![1]), "{name}");
    }
}

#[test]
fn an_ambiguous_trace_name_is_reported() {
    const KNOWN: &str = "ATT-LTE-driving.up";
    let (beside, named) = (folder("beside"), folder("named"));
    let (file, store) = (beside.join("one.toml"), TraceStore::of([named.clone()]));
    let said = |trace: &str| {
        scenario(&file, trace);
        let scenario = Scenario::load(&file.display().to_string()).unwrap();
        (
            opportunities(&file, &store).unwrap(),
            scenario.ambiguous_traces(&store),
        )
    };
    for (name, used) in [("own.down", 1), (KNOWN, 2)] {
        fs::write(beside.join(name), "1\n").unwrap();
        if name != KNOWN {
            assert_eq!(said(name), (vec![1], vec![]));
        }
        fs::write(named.join(name), "2\n").unwrap();
        let mut two = [&beside, &named].map(|folder| folder.join(name).display().to_string());
        if name == KNOWN {
            two.reverse();
        }
        let line = format!(
            "trace {name}: {} is used, and not {}; write a path in the scenario to choose one",
            two[0], two[1]
        );
        assert_eq!(said(name), (vec![used], vec![line]));
        assert_eq!(said(&format!("./{name}")), (vec![1], vec![]));
    }
    // The two ways lead to one file.
    fs::remove_file(named.join("own.down")).unwrap();
    symlink(beside.join("own.down"), named.join("own.down")).unwrap();
    assert_eq!(said("own.down"), (vec![1], vec![]));
}

#[test]
fn missing_and_damaged_traces_are_refused_in_one_line() {
    let only = folder("damaged");
    let store = TraceStore::of([only.clone(), PathBuf::from("elsewhere")]);
    assert_eq!(
        store.load("LTE", Part::Whole).unwrap_err().to_string(),
        format!(
            "trace 'LTE' not found (looked in {}, elsewhere); no collection of `headway traces fetch` has it",
            only.display()
        )
    );
    for (name, collection) in [("nyc-bus.down", "nyc"), ("ATT-LTE-driving.up", "mahimahi")] {
        let error = store.load(name, Part::Whole).unwrap_err().to_string();
        let cure = format!("; get it with `headway traces fetch {collection}`");
        assert!(error.ends_with(&cure), "{error}");
    }
    assert_eq!(
        store
            .load("/dev/null", Part::Whole)
            .unwrap_err()
            .to_string(),
        "cannot read the trace '/dev/null': it is a pipe or a device, and a scenario's trace is read \
         more than once; write it into a file, and name that"
    );
    fs::write(only.join("bad"), "5\n4\n").unwrap();
    assert_eq!(
        store.load("bad", Part::Whole).unwrap_err().to_string(),
        format!(
            "{}: line 2: 4 ms comes after 5 ms; times must not decrease",
            only.join("bad").display()
        )
    );
    fs::create_dir(only.join("folder")).unwrap();
    assert!(
        store
            .load("folder", Part::Whole)
            .unwrap_err()
            .to_string()
            .starts_with("trace 'folder' not found")
    );
}

/// The store with these recorded traces; `None`, and a line that the test runner counts, if one is
/// missing.
fn recorded(test: &str, names: &[&str]) -> Option<TraceStore> {
    let shared = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/traces");
    let store = TraceStore::new([PathBuf::from(shared)]);
    match names.iter().find(|name| store.find(name).is_none()) {
        None => Some(store),
        Some(missing) => {
            use std::io::Write;
            let _ = writeln!(
                std::io::stderr(),
                "skipped: {test}: no trace {missing}; get it with `headway traces fetch {}`",
                collection_of(missing).unwrap_or("mahimahi")
            );
            None
        }
    }
}

#[test]
fn a_training_store_gives_no_evaluation_seconds() {
    let own = folder("training");
    // The trace has a line a second, and the name of a trace whose seconds 325 to 465 are kept.
    let seconds: String = (1..=500).map(|s| format!("{}\n", s * 1000)).collect();
    for name in ["TMobile-LTE-driving.down", "Verizon-LTE-short.up", "mine"] {
        fs::write(own.join(name), &seconds).unwrap();
    }
    let store = TraceStore::of([own.clone()]).for_training();
    let whole = store.load("TMobile-LTE-driving.down", Part::Whole).unwrap();
    assert_eq!(whole.period().as_secs_f64(), 360.0);
    let training = store.load("TMobile-LTE-driving.down", Part::Training);
    assert_eq!(training.unwrap(), whole);
    assert_eq!(store.load("mine", Part::Whole).unwrap().count(), 500);
    let refused = |name: &str, part| store.load(name, part).unwrap_err().to_string();
    assert_eq!(
        refused("Verizon-LTE-short.up", Part::Whole),
        format!(
            "{}: split.toml keeps this trace for evaluation only; train on others (see `headway traces`)",
            own.join("Verizon-LTE-short.up").display()
        )
    );
    assert_eq!(
        refused("mine", Part::Evaluation),
        "trace 'mine': training may not read its seconds for evaluation; write part = \"training\""
    );
    let store = TraceStore::of([own]);
    let held = store.load("TMobile-LTE-driving.down", Part::Evaluation);
    assert_eq!(held.unwrap().period().as_secs_f64(), 140.0);
    let error = store.load("mine", Part::Evaluation).unwrap_err();
    assert!(error.to_string().contains("keeps no seconds of this trace"));
}

#[test]
fn a_renamed_copy_is_known_by_its_contents() {
    const SHORT: &str = "TMobile-LTE-short.down";
    let Some(recorded) = recorded("a_renamed_copy", &[SHORT]) else {
        return;
    };
    let folder = folder("renamed");
    fs::copy(recorded.find(SHORT).unwrap(), folder.join("nyc-bus.down")).unwrap();
    let store = TraceStore::of([folder.clone()]).for_training();
    let refused = || store.load("nyc-bus.down", Part::Whole).unwrap_err();
    assert!(refused().to_string().contains("for evaluation only"));
    // Other line ends do not hide it either.
    let text = fs::read_to_string(folder.join("nyc-bus.down")).unwrap();
    fs::write(folder.join("nyc-bus.down"), text.replace('\n', "\r\n")).unwrap();
    assert!(refused().to_string().contains("for evaluation only"));
}

/// The split relies on this: the short T-Mobile trace is a piece of the long one, packet for
/// packet.
#[test]
fn the_short_t_mobile_trace_is_the_held_out_part_of_the_long_one() {
    let names = ["TMobile-LTE-driving.down", "TMobile-LTE-short.down"];
    let Some(store) = recorded("the_short_t_mobile_trace", &names) else {
        return;
    };
    let held = store.load(names[0], Part::Evaluation).unwrap();
    let short = store.load(names[1], Part::Whole).unwrap();
    // What could be sent by a part's first instant belongs to the part before. A part ends with its
    // last second, 140 s; the short trace ends with its last packet.
    let after_start: Vec<u32> = short
        .opportunities()
        .iter()
        .copied()
        .filter(|&ms| ms > 0)
        .collect();
    let (last, others) = after_start.split_last().unwrap();
    assert_eq!(held.count(), after_start.len());
    assert_eq!(held.opportunities()[..others.len()], *others);
    assert_eq!((*last, held.period().as_secs_f64()), (139_986, 140.0));
    assert!(short.count() - after_start.len() < 10);
}
