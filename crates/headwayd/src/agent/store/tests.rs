use std::os::unix::fs::PermissionsExt;

use headway_cc::{Bytes, Setup};
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use super::*;
use crate::agent::Policies;
use crate::agent::folder::Folder;

const PUBLIC: Class = Class::Public;

fn served() -> PolicySpec {
    PolicySpec::read("owl:online=true").expect("a model of ours")
}

/// The learned state of a flow that has done nothing yet.
fn learned(served: &PolicySpec) -> Vec<u8> {
    let flow = served.carried(&Setup::new(Bytes::new(1500), 0), None);
    let flow = flow.expect("a flow");
    served.learned(&flow).expect("it learns")
}

/// What the first flow offers after this many gradient steps, always with the same score.
fn offer(experience: u64) -> Offer {
    Offer {
        flow: 1,
        experience,
        score: 0,
        at: Time::ZERO,
    }
}

/// The number of gradient steps in the state that is kept.
fn experience(store: &Store, served: &PolicySpec, class: Class) -> u64 {
    let kept = store.learned[&file_name(served, class)].as_ref();
    kept.expect("it is kept").experience
}

/// The state from which the next flow starts, as that flow would save it, and its experience.
fn goes_on_from(store: &mut Store, served: &PolicySpec) -> Option<(Vec<u8>, u64)> {
    let learned = store.learned(served, PUBLIC)?;
    let flow = served.carried(&Setup::new(Bytes::new(1500), 0), Some(learned));
    let said = served.learned(&flow.expect("a flow")).expect("it learns");
    Some((said, experience(store, served, PUBLIC)))
}

#[test]
fn without_a_folder_each_flow_starts_from_the_model() {
    let (mut store, served) = (Store::new(None), served());
    store.keep(&served, PUBLIC, learned(&served), &offer(1000));
    assert!(store.learned(&served, PUBLIC).is_none());
}

#[test]
fn a_saved_file_is_whole_and_only_its_owner_may_read_it() {
    let (folder, served) = (Folder::new("kept"), served());
    let learned = learned(&served);
    let mut store = Store::new(Some(folder.path().to_owned()));
    assert!(store.learned(&served, PUBLIC).is_none());
    store.keep(&served, PUBLIC, learned.clone(), &offer(1000));
    store.save();
    store.finish();
    let files: Vec<_> = fs::read_dir(folder.path())
        .expect("the file exists")
        .collect();
    assert_eq!(files.len(), 1);
    let file = folder.path().join(file_name(&served, PUBLIC));
    let mode = file
        .metadata()
        .expect("the file exists")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    let mut again = Store::new(Some(folder.path().to_owned()));
    assert_eq!(
        goes_on_from(&mut again, &served),
        Some((learned.clone(), 0))
    );
    // Without anything new, nothing is written. A flow that ends late with little experience is not
    // new either.
    fs::remove_file(&file).expect("the file exists");
    for experience in [1000, 1] {
        store.keep(&served, PUBLIC, vec![1], &offer(experience));
        store.save();
        store.finish();
        assert!(!file.exists());
        assert_eq!(
            goes_on_from(&mut store, &served),
            Some((learned.clone(), 1000))
        );
    }
}

/// A pipe without a reader takes the place of the file.
#[test]
fn the_end_does_not_wait_for_a_disk_that_never_answers() {
    let (folder, served) = (Folder::new("stuck"), served());
    let mut store = Store::new(Some(folder.path().to_owned()));
    store.keep(&served, PUBLIC, learned(&served), &offer(1000));
    let file = folder.path().join(file_name(&served, PUBLIC));
    mkfifo(&file.with_extension("learned.part"), Mode::S_IRWXU).expect("a pipe");
    store.save();
    store.end_within(Duration::from_millis(50));
    assert!(store.writes.is_some());
    assert!(!file.exists());
}

/// The newer state is written after the older one.
#[test]
fn a_state_that_changed_during_a_write_is_written_at_the_end() {
    let (folder, served) = (Folder::new("end"), served());
    let mut store = Store::new(Some(folder.path().to_owned()));
    store.keep(&served, PUBLIC, vec![1], &offer(1000));
    store.save();
    let newest = learned(&served);
    store.keep(&served, PUBLIC, newest.clone(), &offer(2000));
    store.end_within(Duration::from_secs(600));
    let file = folder.path().join(file_name(&served, PUBLIC));
    assert_eq!(fs::read(file).expect("it is written"), newest);
}

/// Rax's state is 83 kB of JSON, which a new flow does not parse again.
#[test]
fn a_saved_state_is_parsed_once_for_many_flows() {
    for spec in ["owl:online=true", "rax-pretrained"] {
        let (folder, served) = (Folder::new("once"), PolicySpec::read(spec).expect(spec));
        let mut store = Store::new(Some(folder.path().to_owned()));
        let bytes = learned(&served);
        store.keep(&served, PUBLIC, bytes.clone(), &offer(1000));
        assert_eq!(
            goes_on_from(&mut store, &served),
            Some((bytes.clone(), 1000))
        );
        let kept = store.learned.get_mut(&file_name(&served, PUBLIC));
        kept.and_then(Option::as_mut)
            .expect("it is kept")
            .bytes
            .clear();
        assert_eq!(
            goes_on_from(&mut store, &served),
            Some((bytes.clone(), 1000))
        );
        // A newer state is parsed.
        store.keep(&served, PUBLIC, bytes, &offer(2000));
        assert_eq!(
            goes_on_from(&mut store, &served).map(|(_, count)| count),
            Some(2000)
        );
    }
}

/// Paths of two classes have nothing in common.
#[test]
fn a_flow_does_not_start_from_the_state_of_another_class() {
    let (folder, served) = (Folder::new("classes"), served());
    let learned = learned(&served);
    let prefix = Class::Prefix("10.0.0.0/8".parse().expect("a prefix"));
    let mut store = Store::new(Some(folder.path().to_owned()));
    store.keep(&served, Class::Private, learned.clone(), &offer(100_000));
    assert!(store.learned(&served, PUBLIC).is_none());
    assert!(store.learned(&served, prefix).is_none());
    // A flow of another class with more experience does not keep these from being saved.
    store.keep(&served, PUBLIC, learned.clone(), &offer(100));
    store.keep(&served, prefix, learned.clone(), &offer(200));
    store.save();
    store.finish();
    assert_eq!(files(&folder).len(), 3);
    for (class, gradients) in [(PUBLIC, 100), (prefix, 200), (Class::Private, 100_000)] {
        assert!(store.learned(&served, class).is_some());
        assert_eq!(experience(&store, &served, class), gradients);
    }
    // A learner that diverges in one class does not affect the others.
    store.forget(&served, Class::Private, 1, None);
    store.finish();
    assert_eq!(files(&folder).len(), 2);
    // The next agent finds them by their names.
    let mut next = Store::new(Some(folder.path().to_owned()));
    assert!(next.learned(&served, prefix).is_some());
    assert!(next.learned(&served, Class::Private).is_none());
}

/// What a flow with this score offers at this minute.
fn scored(flow: u32, experience: u64, score: i64, minutes: u64) -> Offer {
    Offer {
        flow,
        experience,
        score,
        at: Time::from_nanos(minutes * 60_000_000_000),
    }
}

#[test]
fn for_an_hour_only_a_better_flow_replaces_a_state() {
    let (folder, served) = (Folder::new("better"), served());
    let mut store = Store::new(Some(folder.path().to_owned()));
    let wants = |store: &Store, offer: Offer| store.wants(&served, PUBLIC, &offer);
    let high = -65_536;
    store.keep(&served, PUBLIC, learned(&served), &scored(1, 1000, high, 1));
    // A flow that is as good is refused, however much it has learned. A better one may have learned
    // less.
    assert!(!wants(
        &store,
        scored(2, 1_000_000, high + LEAST_GAIN - 1, 60)
    ));
    assert!(wants(&store, scored(2, 0, high + LEAST_GAIN, 60)));
    store.keep(&served, PUBLIC, learned(&served), &scored(2, 100, 0, 60));
    assert_eq!(experience(&store, &served, PUBLIC), 100);
    assert!(!wants(&store, scored(3, 1000, LEAST_GAIN - 1, 119)));
    // An hour later the path may be another one.
    assert!(wants(&store, scored(3, 200, high, 120)));
    assert!(!wants(&store, scored(3, 199, high, 120)));
    assert!(wants(&store, scored(3, 0, LEAST_GAIN, 120)));
    // The score of an earlier agent's state is not known.
    store.save();
    store.finish();
    let mut next = Store::new(Some(folder.path().to_owned()));
    assert!(next.learned(&served, PUBLIC).is_some());
    assert!(wants(&next, scored(1, 100, high, 1)));
    assert!(!wants(&next, scored(1, 99, 0, 1)));
}

/// Its newest score counts: a flow that became worse gives way to others.
#[test]
fn a_flow_renews_its_own_state() {
    let (folder, served) = (Folder::new("renews"), served());
    let mut store = Store::new(Some(folder.path().to_owned()));
    let keep = |store: &mut Store, experience, score, minutes| {
        let offer = scored(1, experience, score, minutes);
        store.keep(&served, PUBLIC, learned(&served), &offer);
        self::experience(store, &served, PUBLIC)
    };
    assert_eq!(keep(&mut store, 1000, 0, 1), 1000);
    assert_eq!(keep(&mut store, 1099, 0, 2), 1000);
    assert_eq!(keep(&mut store, 1100, -65_536, 3), 1100);
    assert!(store.wants(&served, PUBLIC, &scored(2, 0, LEAST_GAIN - 65_536, 4)));
    // The hour begins with the newest score.
    let other = |minutes| scored(2, 2000, -65_536, minutes);
    assert!(!store.wants(&served, PUBLIC, &other(62)));
    assert!(store.wants(&served, PUBLIC, &other(63)));
}

#[test]
fn a_state_whose_flow_the_guard_took_is_replaced_by_more_experience() {
    let (folder, served) = (Folder::new("doubted"), served());
    let mut store = Store::new(Some(folder.path().to_owned()));
    let other = scored(2, 2000, -65_536, 2);
    for (flow, starts_from_it, is_doubted) in [(1, false, true), (3, true, true), (3, false, false)]
    {
        store.forget(&served, PUBLIC, 1, None);
        store.keep(&served, PUBLIC, learned(&served), &scored(1, 1000, 0, 1));
        assert!(!store.wants(&served, PUBLIC, &other));
        let version = store.version(&served, PUBLIC).filter(|_| starts_from_it);
        // Renewing the state changes neither what started from it nor a doubt.
        store.keep(&served, PUBLIC, learned(&served), &scored(1, 1100, 0, 1));
        store.doubt(&served, PUBLIC, flow, version);
        store.keep(&served, PUBLIC, learned(&served), &scored(1, 1200, 0, 1));
        assert_eq!(store.wants(&served, PUBLIC, &other), is_doubted, "{flow}");
    }
    // A flow that started from earlier state of the same flow diverges.
    let version = store.version(&served, PUBLIC);
    store.keep(&served, PUBLIC, learned(&served), &scored(1, 1300, 0, 1));
    store.forget(&served, PUBLIC, 3, version);
    assert!(store.learned(&served, PUBLIC).is_none());
}

#[test]
fn a_state_with_less_experience_replaces_a_forgotten_one() {
    let (folder, served) = (Folder::new("forgotten"), served());
    let learned = learned(&served);
    let mut store = Store::new(Some(folder.path().to_owned()));
    store.keep(&served, PUBLIC, learned.clone(), &offer(100_000));
    store.save();
    store.finish();
    let file = folder.path().join(file_name(&served, PUBLIC));
    assert!(file.exists());
    store.forget(&served, PUBLIC, 1, None);
    store.finish();
    assert!(!file.exists());
    assert!(store.learned(&served, PUBLIC).is_none());
    store.keep(&served, PUBLIC, learned.clone(), &offer(100));
    assert_eq!(
        goes_on_from(&mut store, &served),
        Some((learned.clone(), 100))
    );
}

#[test]
fn a_file_that_could_not_be_written_is_written_later() {
    let (folder, served) = (Folder::new("later"), served());
    let place = folder.path().join("state");
    let mut store = Store::new(Some(place.clone()));
    store.keep(&served, PUBLIC, learned(&served), &offer(1000));
    store.save();
    store.finish();
    fs::create_dir(&place).expect("a folder");
    store.save();
    store.finish();
    assert!(place.join(file_name(&served, PUBLIC)).exists());
}

fn files(folder: &Folder) -> Vec<String> {
    let entries = fs::read_dir(folder.path()).expect("the folder exists");
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("the file exists").file_name())
        .map(|name| name.into_string().expect("plain letters"))
        .collect();
    names.sort();
    names
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("our own");
}

/// Runs `work` in a thread for which the modes of files hold, even if the tests run as root.
fn without_privileges(work: impl FnOnce() + Send + 'static) {
    let thread = std::thread::spawn(move || {
        for one in [
            caps::Capability::CAP_DAC_OVERRIDE,
            caps::Capability::CAP_DAC_READ_SEARCH,
        ] {
            caps::drop(None, caps::CapSet::Effective, one).expect("one may have less");
        }
        work();
    });
    thread.join().expect("it holds");
}

/// A store that has refused the policy's file and has then kept a new state.
fn keeps_after_refusal(folder: &Folder, served: &PolicySpec) -> Store {
    let mut store = Store::new(Some(folder.path().to_owned()));
    assert!(store.learned(served, PUBLIC).is_none());
    store.keep(served, PUBLIC, learned(served), &offer(1000));
    store.save();
    store.finish();
    store
}

#[test]
fn a_refused_file_is_set_aside_and_never_overwritten() {
    let owl = served();
    let rax = PolicySpec::read("rax-pretrained").expect("a scheme of ours");
    let newer = String::from_utf8(learned(&rax)).expect("text");
    let newer = newer.replacen("headway-learner 1", "headway-learner 2", 1);
    for (served, bytes) in [(&owl, vec![0; 7]), (&rax, newer.into_bytes())] {
        let folder = Folder::new("aside");
        let name = file_name(served, PUBLIC);
        fs::write(folder.path().join(&name), &bytes).expect("there is room");
        keeps_after_refusal(&folder, served);
        let [kept, refused] = &files(&folder)[..] else {
            panic!("{:?}", files(&folder))
        };
        assert_eq!(kept, &name);
        let (stem, time) = refused.split_once(".refused-").expect("its name");
        assert_eq!(stem, name);
        assert!(time.parse::<u64>().expect("a time") > 1_700_000_000);
        assert_eq!(
            fs::read(folder.path().join(refused)).expect("the file exists"),
            bytes
        );
        // The next agent starts from the new file. A second refused file does not replace the
        // first.
        let mut again = Store::new(Some(folder.path().to_owned()));
        assert!(again.learned(served, PUBLIC).is_some());
        fs::write(folder.path().join(&name), b"wrong again").expect("there is room");
        keeps_after_refusal(&folder, served);
        assert_eq!(files(&folder).len(), 3);
    }
}

/// Such a file was learned from flows to all destinations.
#[test]
fn a_file_from_before_there_were_classes_is_not_used() {
    for spec in ["owl:online=true", "rax-pretrained"] {
        let folder = Folder::new("unclassed");
        let prefix = "10.7.0.0/16";
        let policies = Policies::read([spec, &format!("{prefix}={spec}")]).expect("policies");
        let served = PolicySpec::read(spec).expect("a scheme of ours");
        // Agents used this name until 27 November 2026.
        let digest = sha256(format!("{}\n{spec}", served.model_id()).as_bytes());
        let id = served.model_id().replace(['@', '.'], "-");
        let old = format!("{id}-{}.learned", &digest[..16]);
        fs::write(folder.path().join(&old), learned(&served)).expect("there is room");
        let mut store = Store::new(Some(folder.path().to_owned()));
        store.take(SavedStates::read(folder.path(), &policies));
        let prefix = Class::Prefix(prefix.parse().expect("a prefix"));
        for class in [PUBLIC, Class::Private, prefix] {
            assert!(store.learned(&served, class).is_none(), "{spec}, {class}");
        }
        let [aside] = &files(&folder)[..] else {
            panic!("{:?}", files(&folder))
        };
        assert!(aside.starts_with(&format!("{old}.refused-")), "{aside}");
        assert_eq!(
            fs::read(folder.path().join(aside)).expect("the file exists"),
            learned(&served)
        );
    }
}

/// This holds for each class of the agent's policies, before any flow begins.
#[test]
fn unreadable_files_are_set_aside_at_the_start() {
    let (folder, served) = (Folder::new("start"), served());
    let policies = Policies::read(["owl", "10.0.0.0/8=owl:online=true"]).expect("policies");
    let prefix = Class::Prefix("10.0.0.0/8".parse().expect("a prefix"));
    let other = Class::Prefix("10.1.0.0/16".parse().expect("a prefix"));
    for class in [prefix, other, PUBLIC, Class::Private] {
        fs::write(folder.path().join(file_name(&served, class)), b"wrong").expect("there is room");
    }
    SavedStates::read(folder.path(), &policies);
    let refused = |class| {
        let name = format!("{}.refused-", file_name(&served, class));
        files(&folder).iter().any(|file| file.starts_with(&name))
    };
    assert!(refused(prefix));
    // No flow of this agent would start from these.
    assert!(![other, PUBLIC, Class::Private].map(refused).contains(&true));
    let policies = Policies::read(["owl:online=true"]).expect("policies");
    SavedStates::read(folder.path(), &policies);
    assert!(refused(PUBLIC) && refused(Class::Private) && !refused(other));
}

/// A reload does this: no flow waits for the disk.
#[test]
fn flows_start_from_states_that_another_thread_has_read() {
    let (folder, served) = (Folder::new("another-thread"), served());
    let policies = Policies::read([served.spec()]).expect("policies");
    let file = folder.path().join(file_name(&served, PUBLIC));
    fs::write(&file, learned(&served)).expect("there is room");
    let read = || SavedStates::read(folder.path(), &policies);
    let saved = std::thread::scope(|scope| scope.spawn(read).join()).expect("no panic");
    // A file that is gone shows that the store does not read it again.
    fs::remove_file(&file).expect("the file exists");
    let mut store = Store::new(Some(folder.path().to_owned()));
    store.take(saved.clone());
    assert_eq!(experience(&store, &served, PUBLIC), 0);
    assert!(store.learned(&served, PUBLIC).is_some());
    // What the store has learned since then stays.
    store.keep(&served, PUBLIC, learned(&served), &offer(1000));
    store.take(saved);
    assert_eq!(experience(&store, &served, PUBLIC), 1000);
}

#[test]
fn states_of_replaced_policies_are_dropped_once_they_are_written_and_no_flow_has_them() {
    let (folder, served) = (Folder::new("replaced"), served());
    let read = |spec: &str| {
        let policies = Policies::read([spec]).expect("policies");
        SavedStates::read(folder.path(), &policies)
    };
    let mut store = Store::new(Some(folder.path().to_owned()));
    store.keep(&served, PUBLIC, learned(&served), &offer(1000));
    store.take(read("rax"));
    store.drop_replaced(std::iter::empty());
    assert_eq!(experience(&store, &served, PUBLIC), 1000);
    store.save();
    store.finish();
    store.drop_replaced([(&served, PUBLIC)].into_iter());
    assert_eq!(experience(&store, &served, PUBLIC), 1000);
    store.drop_replaced(std::iter::empty());
    assert!(!store.learned.contains_key(&file_name(&served, PUBLIC)));
    assert!(store.learned(&served, PUBLIC).is_some(), "the file has it");
}

#[test]
fn a_file_without_permission_to_read_is_set_aside() {
    without_privileges(|| {
        let (folder, served) = (Folder::new("unreadable"), served());
        let file = folder.path().join(file_name(&served, PUBLIC));
        fs::write(&file, learned(&served)).expect("there is room");
        set_mode(&file, 0o000);
        keeps_after_refusal(&folder, &served);
        assert_eq!(files(&folder).len(), 2);
        let aside = folder.path().join(&files(&folder)[1]);
        set_mode(&aside, 0o600);
        assert_eq!(fs::read(aside).expect("the file exists"), learned(&served));
    });
}

#[test]
fn a_refused_file_that_cannot_be_renamed_is_neither_overwritten_nor_removed() {
    without_privileges(|| {
        let (folder, served) = (Folder::new("stays"), served());
        let file = folder.path().join(file_name(&served, PUBLIC));
        fs::write(&file, b"wrong").expect("there is room");
        set_mode(folder.path(), 0o500);
        let mut store = keeps_after_refusal(&folder, &served);
        assert!(!store.wants(&served, PUBLIC, &offer(u64::MAX)));
        // That holds even if the agent may write there later.
        set_mode(folder.path(), 0o700);
        store.keep(&served, PUBLIC, learned(&served), &offer(1_000_000));
        store.forget(&served, PUBLIC, 1, None);
        store.save();
        store.finish();
        assert_eq!(files(&folder).len(), 1);
        assert_eq!(fs::read(file).expect("the file exists"), b"wrong");
    });
}

#[test]
fn a_folder_without_permission_to_write_is_refused_at_the_start() {
    without_privileges(|| {
        let folder = Folder::new("probe");
        let mut store = Store::new(Some(folder.path().to_owned()));
        store.claim().expect("it is ours");
        assert_eq!(files(&folder), [""; 0], "nothing stays");
        drop(store);
        set_mode(folder.path(), 0o500);
        let mut store = Store::new(Some(folder.path().to_owned()));
        let error = store.claim().expect_err("it is not").to_string();
        set_mode(folder.path(), 0o700);
        assert!(
            error.contains("--state") && error.contains("Permission denied"),
            "{error}"
        );
        assert!(!error.contains('\n'), "{error}");
    });
    Store::new(None).claim().expect("nothing is to be written");
}

#[test]
fn a_second_agent_may_not_use_the_folder_of_the_first() {
    let folder = Folder::new("two");
    let mut first = Store::new(Some(folder.path().to_owned()));
    first.claim().expect("it is free");
    let mut second = Store::new(Some(folder.path().to_owned()));
    let error = second.claim().expect_err("it is taken").to_string();
    let named = format!("--state {}: another headwayd", folder.path().display());
    assert!(
        error.starts_with(&named) && !error.contains('\n'),
        "{error}"
    );
    drop(first);
    second.claim().expect("it is free again");
}

/// The file is a link to itself, which not even root can follow.
#[test]
fn a_file_that_cannot_be_read_for_a_while_stays_and_is_read_later() {
    let (folder, served) = (Folder::new("for-a-while"), served());
    let file = folder.path().join(file_name(&served, PUBLIC));
    std::os::unix::fs::symlink(&file, &file).expect("there is room");
    let mut store = keeps_after_refusal(&folder, &served);
    assert!(!store.wants(&served, PUBLIC, &offer(u64::MAX)));
    store.forget(&served, PUBLIC, 1, None);
    store.finish();
    assert_eq!(files(&folder), [file_name(&served, PUBLIC)]);
    assert!(file.is_symlink(), "it is not overwritten");
    assert!(store.learned(&served, PUBLIC).is_none());
    fs::remove_file(&file).expect("the file exists");
    fs::write(&file, learned(&served)).expect("there is room");
    let known = learned(&served);
    // No flow waits for the disk again, also if other states are saved.
    store.save();
    assert!(store.learned(&served, PUBLIC).is_none());
    store.read_again();
    assert_eq!(goes_on_from(&mut store, &served), Some((known.clone(), 0)));
    assert!(store.wants(&served, PUBLIC, &offer(1000)));
}

#[test]
fn a_long_spec_has_a_short_file_name_of_its_own() {
    let folder = Folder::new("long");
    let long = format!("{}/{}", folder.path().display(), "deep/".repeat(100));
    fs::create_dir_all(&long).expect("a folder");
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/owl-v1");
    for file in fs::read_dir(models).expect("a model of ours") {
        let file = file.expect("a file").path();
        let name = file.file_name().expect("a name");
        fs::copy(&file, Path::new(&long).join(name)).expect("there is room");
    }
    let long = format!("owl:online=true:model={long}");
    let [long, short] =
        [&long, "owl:online=true"].map(|spec| PolicySpec::read(spec).expect("a model of ours"));
    assert_eq!(long.model_id(), short.model_id());
    let [name, other] = [&long, &short].map(|served| file_name(served, PUBLIC));
    assert!(name != other && name.len() < 200, "{name} {other}");
    let state = Folder::new("long-state");
    keeps_after_refusal(&state, &long);
    assert_eq!(files(&state), [name]);
}

#[test]
fn a_wrong_file_is_refused_with_one_line() {
    let owl = served();
    let right = learned(&owl);
    let size = right.len();
    let replaced = |from: &str, to: &str| {
        let text: Vec<u8> = right.clone();
        let at = text
            .windows(from.len())
            .position(|part| part == from.as_bytes());
        let at = at.unwrap_or_else(|| panic!("{from}"));
        [&text[..at], to.as_bytes(), &text[at + from.len()..]].concat()
    };
    let mut nan = right.clone();
    nan[size - 4..].copy_from_slice(&f32::NAN.to_le_bytes());
    let newer = replaced(r#"{\"format\":1"#, r#"{\"format\":2"#);
    let other = replaced("owl-v1@", "owl-v2@");
    let policy = replaced(":online=true", ":online=tree");
    let rax = PolicySpec::read("rax-pretrained").expect("a scheme of ours");
    let whole = learned(&rax);
    let short = whole[..whole.len() / 2].to_vec();
    for (served, bytes, why) in [
        (&owl, vec![0; 7], "not a whole safetensors file"),
        (
            &owl,
            right[..size - 1].to_vec(),
            "not a whole safetensors file",
        ),
        (&owl, nan, "finite"),
        (&owl, newer, "its format is 2, must be 1"),
        (&owl, other, r#"its model is "owl-v2@"#),
        (
            &owl,
            policy,
            r#"its policy is "owl:online=tree", must be "owl:online=true""#,
        ),
        (&rax, short, ""),
    ] {
        let said = served
            .experience(&bytes)
            .expect_err("it is wrong")
            .to_string();
        assert!(
            said.contains(why) && !said.is_empty() && !said.contains('\n'),
            "{said}"
        );
    }
    for (served, right) in [(&owl, right), (&rax, whole)] {
        let found = served.experience(&right).expect("it is right");
        assert_eq!(
            found.updates() > 200,
            served.agent().is_none(),
            "a learner says it"
        );
    }
}
