//! Learners' folders: which are loaded and which are refused.

use std::fs;
use std::path::PathBuf;

use headway_cc::Registry;
use headway_policy::model::{
    CARD, LEARNER, Learner, LearnerFiles, ModelError, sha256, shipped_learners,
};
use headway_policy::schemes::SCHEMES;

fn refused(card: &[u8], learner: &[u8]) -> String {
    let error: ModelError =
        Learner::read("here", LearnerFiles { card, learner }).expect_err("refused");
    let text = error.to_string();
    assert_eq!(text.lines().count(), 1, "{text}");
    text
}

#[test]
fn every_shipped_learner_loads() {
    for one in shipped_learners() {
        let learner = one.learner().unwrap_or_else(|e| panic!("{e}"));
        let card = learner.card();
        assert_eq!(format!("{}-v{}", card.name, card.version), one.title);
        assert!(learner.updates() > 10_000, "{}", learner.updates());
    }
}

#[test]
fn incomplete_or_foreign_learners_are_refused_in_one_line() {
    let files = shipped_learners()[0].files;
    let card = str::from_utf8(files.card).expect("a text");
    for length in [0, 1, 100, files.learner.len() - 1] {
        let error = refused(files.card, &files.learner[..length]);
        assert!(
            error.contains("here/learner.txt: its SHA-256 is "),
            "{error}"
        );
    }
    // The learner is incomplete, although its card fits.
    let half = &files.learner[..files.learner.len() / 2];
    let hash = sha256(files.learner);
    let fitting = card.replace(&hash, &sha256(half));
    assert_eq!(
        refused(fitting.as_bytes(), half),
        "here/learner.txt: learner's checkpoint: incomplete or changed; copy it again"
    );
    let other = card.replace("scheme = \"rax\"", "scheme = \"cubic\"");
    assert_eq!(
        refused(other.as_bytes(), files.learner),
        "here/card.toml: scheme is \"cubic\", must be \"rax\""
    );
    let later = card.replacen("format = 1", "format = 2", 1);
    assert!(refused(later.as_bytes(), files.learner).contains("format is 2, this headway reads"));
    assert!(refused(b"\xff", files.learner).contains("not a text in UTF-8"));
    assert!(refused(b"", files.learner).contains("format is missing"));
}

#[test]
fn a_scheme_takes_a_learner_by_its_version_or_its_folder() {
    let registry = Registry::new(SCHEMES);
    let newest = registry.select("rax-pretrained").expect("it ships");
    let id = newest.model().expect("a learner").to_owned();
    assert!(id.starts_with("rax-v3@"), "{id}");

    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("rax-v3");
    fs::create_dir_all(&folder).expect("a folder");
    let files = shipped_learners()[0].files;
    fs::write(folder.join(CARD), files.card).expect("written");
    fs::write(folder.join(LEARNER), files.learner).expect("written");
    let spec = format!("rax-pretrained:model={}", folder.display());
    let own = registry.select(&spec).expect("a folder");
    assert_eq!(own.model(), Some(id.as_str()));

    let error = registry
        .select("rax-pretrained:model=v9")
        .expect_err("none");
    assert!(error.to_string().contains("did you mean 'v3'?"), "{error}");
    let error = registry.select("rax-pretrained:model=./nowhere");
    let error = error.expect_err("none").to_string();
    assert!(error.contains("./nowhere: no such folder"), "{error}");
}
