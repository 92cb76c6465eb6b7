//! Scenarios with the same meaning have the same hash.

use crate::{ONE, parse};

#[test]
fn equal_meaning_has_equal_hash() {
    let other_spellings = [
        // Another order, comments and units.
        "name=\"one\"\nseconds=60.0\nschema=1\n# a comment\n[bottleneck]\nloss='1%'\nqueue='0.5bdp'\ndelay='0.02s'\nrate='12000kbps'",
        // Defaults, and a name, which does not matter.
        "schema=1\nname='two'\nseconds=60\ntraining=true\ndescription='x'\ntransport='simple'\npacket_size='1500B'\n\
         [bottleneck]\nrate='12Mbps..12Mbps'\ndelay='20ms'\nqueue={kind='droptail',bytes='0.5bdp'}\nloss=0.01\n\
         [return]\ndelay='20ms'\n[[flow]]\nstart='0s'",
        // The long form of the same graph.
        "schema=1\nname='three'\nseconds=60\n\
         [[link]]\nname='bottleneck'\nfrom='sender'\nto='receiver'\nrate='12Mbps'\ndelay='20ms'\nqueue='0.5bdp'\nloss=0.01\n\
         [[link]]\nname='return'\nfrom='receiver'\nto='sender'\ndelay='20ms'\n[[flow]]\nfrom='sender'\nto='receiver'",
    ];
    for text in other_spellings {
        assert_eq!(parse(text).hash(), parse(ONE).hash(), "{text}");
        assert_eq!(parse(text).draw(1), parse(ONE).draw(1), "{text}");
    }
}

#[test]
fn different_meaning_has_different_hash() {
    for (from, to) in [
        ("12Mbps", "12.1Mbps"),
        ("\"12Mbps\"", "\"12Mbps..13Mbps\""),
        ("0.5bdp", "0.6bdp"),
        ("0.5bdp", "30kB"),
        ("0.5bdp\"", "0.5bdp\"\nrouter = \"scheme\""),
        ("0.01", "0.011"),
        ("seconds = 60", "seconds = 61"),
        ("seconds = 60", "seconds = 60\ntransport = \"linux\""),
        ("0.01", "0.01\n[varies]\nstart = \"0s..1s\""),
        ("0.01", "0.01\n[[flow]]\ncount = 2"),
    ] {
        let text = ONE.replacen(from, to, 1);
        assert_ne!(parse(&text).hash(), parse(ONE).hash(), "{from} -> {to}");
    }
}
