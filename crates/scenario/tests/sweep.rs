//! Families: one file, several scenarios.

use headway_scenario::{Scenario, shipped};

const FAMILY: &str = r#"# A comment.
schema = 1
name = "buffers"
seconds = 10

[sweep]
key = "bottleneck.queue" # what differs
values = ["10kB", "0.5bdp",
          "3pkt"]

[bottleneck]
rate = "50Mbps"
delay = "15ms"
queue = "10kB"
"#;

fn members(text: &str) -> Vec<Scenario> {
    Scenario::parse_all(text, "x.toml").unwrap_or_else(|e| panic!("{e}"))
}

fn refused(text: &str) -> String {
    Scenario::parse_all(text, "x.toml").unwrap_err().to_string()
}

#[test]
fn a_member_is_the_file_with_its_value_in_place() {
    let all = members(FAMILY);
    let names: Vec<&str> = all.iter().map(Scenario::name).collect();
    assert_eq!(
        names,
        [
            "buffers:queue=10kB",
            "buffers:queue=0.5bdp",
            "buffers:queue=3pkt"
        ]
    );
    let (head, tail) = FAMILY.split_once("[sweep]").unwrap();
    let (_, link) = tail.split_once("\n\n").unwrap();
    for (member, value) in all.iter().zip(["10kB", "0.5bdp", "3pkt"]) {
        let text = format!("{head}{}", link.replace("10kB", value));
        let alone = Scenario::parse(&text, "alone").unwrap();
        assert_eq!(member.hash(), alone.hash(), "{value}");
        assert_eq!(member.draw(1), alone.draw(1), "{value}");
        // Its own text is that scenario, with every line in its place.
        let again = Scenario::parse(member.text(), "again").unwrap();
        assert_eq!((again.name(), again.hash()), (member.name(), member.hash()));
        assert_eq!(again.text().lines().count(), FAMILY.lines().count());
        let sweep = member.sweep().unwrap();
        assert_eq!(
            (sweep.family.as_str(), sweep.key.as_str()),
            ("buffers", "bottleneck.queue")
        );
        assert_eq!(sweep.values, ["10kB", "0.5bdp", "3pkt"]);
    }
    assert!(members(all[0].text())[0].sweep().is_none());
}

#[test]
fn any_single_value_may_be_swept() {
    let text = "schema=1\nname='n'\nseconds=10\n[bottleneck]\nrate='1Mbps'\nqueue={kind='droptail',packets='3pkt'}\n\
                [[flow]]\n[[flow]]\ncount=1\n[sweep]\n";
    let swept = |sweep: &str| members(&format!("{text}{sweep}"));
    let flows: Vec<usize> = swept("key='flow[1].count'\nvalues=[1, 2, 16]")
        .iter()
        .map(Scenario::flows)
        .collect();
    assert_eq!(flows, [2, 3, 17]);
    let lengths = swept("values=[0.5, 1e2]\nkey='seconds'");
    assert_eq!(lengths[0].name(), "n:seconds=0.5");
    assert_eq!(lengths[1].seconds(), 100.0);
    let queues = swept("key='bottleneck.queue.packets'\nvalues=['5pkt']");
    assert_eq!(queues[0].name(), "n:packets=5pkt");
    // A single value replaces a table.
    assert_eq!(
        swept("key='bottleneck.queue'\nvalues=['infinite']").len(),
        1
    );
}

#[test]
fn mistakes_are_refused_in_one_line() {
    let with = |key: &str, values: &str| {
        format!(
            "{}[sweep]\nkey = {key}\nvalues = {values}\n",
            FAMILY.split_once("[sweep]").unwrap().0
        ) + "[bottleneck]\nrate = '1Mbps'\n[[flow]]\n"
    };
    for (key, values, want) in [
        (
            "'bottleneck.queue'",
            "['1kB']",
            "x.toml:7: sweep.key: 'bottleneck.queue' is not in the file; write it there with any of the values, and its path here such as \"bottleneck.queue\" or \"flow[0].count\"",
        ),
        (
            "'flow[7].count'",
            "[1]",
            "x.toml:7: sweep.key: 'flow[7].count' is not in the file; write it there with any of the values, and its path here such as \"bottleneck.queue\" or \"flow[0].count\"",
        ),
        (
            "'name'",
            "['a']",
            "x.toml:7: sweep.key: 'name' cannot be swept; name one value",
        ),
        (
            "'bottleneck'",
            "['a']",
            "x.toml:7: sweep.key: 'bottleneck' cannot be swept; name one value",
        ),
        (
            "'flow'",
            "['a']",
            "x.toml:7: sweep.key: 'flow' cannot be swept; name one value",
        ),
        (
            "'flow[0]'",
            "['a']",
            "x.toml:7: sweep.key: 'flow[0]' cannot be swept; name one value",
        ),
        (
            "'sweep.key'",
            "['a']",
            "x.toml:7: sweep.key: 'sweep.key' cannot be swept; name one value",
        ),
        (
            "'bottleneck.rate'",
            "[]",
            "x.toml:8: sweep.values: 0 values; write from 1 to 1000",
        ),
        (
            "'bottleneck.rate'",
            "'1Mbps'",
            "x.toml:8: sweep.values: this is of type string; write a list of values such as [\"10kB\", \"100kB\"]",
        ),
        (
            "'bottleneck.rate'",
            "['1 Mbps']",
            "x.toml:8: sweep.values[0]: '1 Mbps' is not a name of 1 to 100 letters, digits and -_.%+",
        ),
        (
            "'bottleneck.rate'",
            "['1Mbps', '2Mbps', '1Mbps']",
            "x.toml:8: sweep.values[2]: '1Mbps' is there twice; remove one",
        ),
        // A member's own mistake is reported on the line of the key.
        (
            "'bottleneck.rate'",
            "['1Mbps', '2Mps']",
            "x.toml:10: bottleneck.rate: '2Mps' is not a rate; write for example \"12Mbps\" (units: bps, kbps, Mbps, Gbps)",
        ),
    ] {
        assert_eq!(refused(&with(key, values)), want);
    }
    assert_eq!(
        refused(
            "schema=1\nname='x'\n[sweep]\nkey='flow[0].route[1]'\nvalues=['b','c']\n[[flow]]\nroute=['a','b']\n"
        ),
        "x.toml:4: sweep.key: 'flow[0].route[1]' is an element of a list, so it cannot name members; sweep a value with a key, such as \"bottleneck.queue\""
    );
    assert_eq!(
        refused("schema=1\nname='x'\nsweep={key='a',values=[1]}"),
        "x.toml:3: sweep: write it as a table of its own: [sweep], with key and values below"
    );
    assert_eq!(
        Scenario::parse(FAMILY, "x.toml").unwrap_err().to_string(),
        "x.toml:6: sweep: a sweep makes several scenarios of this file; name one of them"
    );
}

#[test]
fn members_are_loaded_by_name_and_by_file() {
    let path = std::env::temp_dir().join(format!("headway-family-{}.toml", std::process::id()));
    std::fs::write(&path, FAMILY).unwrap();
    let path = path.to_str().unwrap();
    assert_eq!(Scenario::load_all(path).unwrap().len(), 3);
    let one = Scenario::load(&format!("{path}:queue=0.5bdp")).unwrap();
    assert_eq!(one.name(), "buffers:queue=0.5bdp");
    assert_eq!(
        Scenario::load(path).unwrap_err().to_string(),
        format!(
            "'{path}' is a family of 3 scenarios; name one of them, such as 'buffers:queue=3pkt'"
        )
    );
    assert_eq!(
        Scenario::load(&format!("{path}:queue=10KB"))
            .unwrap_err()
            .to_string(),
        format!("scenario '{path}' has no member 'queue=10KB'; did you mean 'queue=10kB'?")
    );
    std::fs::remove_file(path).unwrap();
    assert_eq!(
        Scenario::load_all("rax-1:queue=10kB")
            .unwrap_err()
            .to_string(),
        "scenario 'rax-1' has no member 'queue=10kB'; it has no sweep"
    );
    for name in shipped() {
        for member in Scenario::load_all(name).unwrap() {
            assert_eq!(Scenario::load(member.name()).unwrap().hash(), member.hash());
        }
    }
}
