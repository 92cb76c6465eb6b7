//! The keys at the top of a file.

use crate::refused;

#[test]
fn the_whole_file() {
    for (text, want) in [
        (
            "",
            "x.toml:1: the file: schema is missing; write for example schema = 1",
        ),
        (
            "schema = 2",
            "x.toml:1: schema: schema 2 is unknown; this version reads 1",
        ),
        (
            "schema = 1\nnmae = 'x'",
            "x.toml:2: nmae: unknown key; did you mean 'name'?", // codespell:ignore nmae
        ),
        (
            "schema = 1\nname = 'a b'",
            "x.toml:2: name: 'a b' is not a name of 1 to 100 letters, digits and -_.:=%+",
        ),
        (
            "schema = 1\nname = 7",
            "x.toml:2: name: this is of type integer; write a name of 1 to 100 letters, digits and -_.:=%+",
        ),
        (
            "schema = 1\nname = 'x'",
            "x.toml:1: the file: seconds is missing; write for example seconds = 60",
        ),
        (
            "schema = 1\nname = 'x'\nseconds = nan",
            "x.toml:3: seconds: write a number of seconds from 0.001 to 1000000, such as 60",
        ),
        (
            "schema = 1\nname = 'x'\nseconds = 60",
            "x.toml:1: the file: there is no link; write [bottleneck] with a rate or a trace, or [[link]]",
        ),
        (
            "schema = 1\nschema = 1",
            "x.toml:2: this is not TOML: duplicate key",
        ),
    ] {
        assert_eq!(refused(text), want);
    }
    assert!(refused("schema = \n").starts_with("x.toml:1: this is not TOML: "));
}
