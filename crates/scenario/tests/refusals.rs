//! Every mistake is answered by one line: where, what, and what would be right.

use headway_scenario::{Scenario, shipped};
use proptest::prelude::*;

fn refused(text: &str) -> String {
    match Scenario::parse(text, "x.toml") {
        Ok(_) => panic!("accepted: {text}"),
        Err(e) => e.to_string(),
    }
}

/// Lines 1 to 3, then the case from line 4 on.
fn with_head(rest: &str) -> String {
    format!("schema = 1\nname = \"x\"\nseconds = 60\n{rest}")
}

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
            "x.toml:2: nmae: unknown key; did you mean 'name'?",
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

#[test]
fn the_short_form() {
    for (rest, want) in [
        (
            "transport = 'linus'\n",
            "x.toml:4: transport: 'linus' is unknown; did you mean 'linux'?",
        ),
        (
            "packet_size = '0B'\n",
            "x.toml:4: packet_size: '0B' is not a size from 1B to 65535B",
        ),
        (
            "packet_size = '100B..200B'\n",
            "x.toml:4: packet_size: this cannot be a range; write one size such as \"1500B\"",
        ),
        (
            "[bottleneck]\ndelay = '1ms'",
            "x.toml:4: bottleneck: a rate or a trace is missing; write for example rate = \"12Mbps\"",
        ),
        (
            "[bottleneck]\nrat = '1Mbps'",
            "x.toml:5: bottleneck.rat: unknown key; did you mean 'rate'?",
        ),
        (
            "[bottleneck]\nrate = 12",
            "x.toml:5: bottleneck.rate: this is of type integer; write a rate such as \"12Mbps\" or a range such as \"10Mbps..100Mbps\"",
        ),
        (
            "[bottleneck]\nrate = '0Mbps'",
            "x.toml:5: bottleneck.rate: '0Mbps' is not a rate from 1bps to 10000Gbps",
        ),
        (
            "[bottleneck]\nrate = '9Mbps..2Mbps'",
            "x.toml:5: bottleneck.rate: the range '9Mbps..2Mbps' is reversed; write the smaller value first",
        ),
        (
            "[bottleneck]\nrate = '1Mbps'\ntrace = 'a'",
            "x.toml:6: bottleneck.trace: a link has a rate or a trace, not both; remove one",
        ),
        (
            "[bottleneck]\nrate = '1Mbps'\npart = 'evaluation'",
            "x.toml:6: bottleneck.part: only a trace has parts; remove it or write trace = \"...\"",
        ),
        (
            "[bottleneck]\ntrace = 'a'\npart = 'evalution'",
            "x.toml:6: bottleneck.part: 'evalution' is unknown; did you mean 'evaluation'?",
        ),
        (
            "[bottleneck]\nrate = '1Mbps'\nonce = true",
            "x.toml:6: bottleneck.once: only a trace ends; remove it or write trace = \"...\"",
        ),
        (
            "[bottleneck]\nrate = '1Mbps'\nloss = 1.5",
            "x.toml:6: bottleneck.loss: 1.5 is not a probability from 0 to 1",
        ),
        (
            "[bottleneck]\nrate = '1Mbps'\nloss = nan",
            "x.toml:6: bottleneck.loss: NaN is not a probability from 0 to 1",
        ),
        (
            "[bottleneck]\nrate = '1Mbps'\nloss = '-1%..1%'",
            "x.toml:6: bottleneck.loss: '-1%' is not a probability from 0 to 1",
        ),
        (
            "[bottleneck]\nrate = '1Mbps'\nloss = { kind = 'gilbert', to_bad = 0.1, to_good = 0.5 }",
            "x.toml:6: bottleneck.loss.kind: 'gilbert' is unknown; there are: gilbert-elliott",
        ),
        (
            "[bottleneck]\nrate = '1Mbps'\nloss = { kind = 'gilbert-elliott', to_bad = 0.1 }",
            "x.toml:6: bottleneck.loss: to_good is missing; write for example to_good = 0.1",
        ),
        (
            "[bottleneck]\nrate = '1Mbps'\nloss = { kind = 'gilbert-elliott', to_bad = 0.1, to_good = 2 }",
            "x.toml:6: bottleneck.loss.to_good: 2 is not a probability from 0 to 1",
        ),
        (
            "[bottleneck]\nrate = '1Mbps'\njitter = 5",
            "x.toml:6: bottleneck.jitter: this is of type integer; write a time such as \"20ms\" or a range such as \"10ms..200ms\"",
        ),
        (
            "[bottleneck]\nrate = '1Mbps'\njitter = { most = '5ms' }",
            "x.toml:6: bottleneck.jitter.most: unknown key; there are: mean",
        ),
        (
            "[bottleneck]\nrate = '1Mbps'\nreorder = 0.1",
            "x.toml:6: bottleneck.reorder: this is of type float; write a table",
        ),
        (
            "[bottleneck]\nrate = '1Mbps'\nreorder = { probability = 0.1 }",
            "x.toml:6: bottleneck.reorder: delay is missing; write for example delay = \"5ms\"",
        ),
        (
            "[bottleneck]\nrate = '1Mbps'\nqueue = 'codel'",
            "x.toml:6: bottleneck.queue: 'codel' is not a queue; write a size such as \"100pkt\", \"150kB\" or \"0.5bdp\", or \"infinite\"",
        ),
        (
            "[bottleneck]\nrate = '1Mbps'\nqueue = { kind = 'droptial', packets = '1pkt' }",
            "x.toml:6: bottleneck.queue.kind: 'droptial' is unknown; did you mean 'droptail'?",
        ),
        (
            "[bottleneck]\nrate = '1Mbps'\nqueue = { kind = 'droptail' }",
            "x.toml:6: bottleneck.queue: a limit is missing; write for example packets = \"100pkt\"",
        ),
        (
            "[bottleneck]\nrate = '1Mbps'\nqueue = { kind = 'drophead' }",
            "x.toml:6: bottleneck.queue: a limit is missing; write for example packets = \"100pkt\"",
        ),
        (
            "[bottleneck]\nrate = '1Mbps'\nqueue = { packets = '9pkt' }",
            "x.toml:6: bottleneck.queue: kind is missing; write for example kind = \"droptail\"",
        ),
        (
            "[bottleneck]\nrate = '1Mbps'\nqueue = { kind = 'fq-codel' }",
            "x.toml:6: bottleneck.queue.kind: 'fq-codel' is unknown; did you mean 'fq_codel'?",
        ),
        (
            "[bottleneck]\nrate = '1Mbps'\nqueue = { kind = 'codel', tarket = '5ms' }",
            "x.toml:6: bottleneck.queue.tarket: unknown key; did you mean 'target'?",
        ),
        (
            "[bottleneck]\nrate = '1Mbps'\nqueue = { kind = 'droptail', packets = '9pkt', ecn = true }",
            "x.toml:6: bottleneck.queue.ecn: unknown key; there are: kind, packets, bytes",
        ),
        (
            "[bottleneck]\nrate = '1Mbps'\nqueue = { kind = 'codel', interval = '0ms' }",
            "x.toml:6: bottleneck.queue.interval: '0ms' is not a time from 1ns to 1000000s",
        ),
        (
            "[bottleneck]\nrate = '1Mbps'\nqueue = { kind = 'pie', variant = 'rfc8034' }",
            "x.toml:6: bottleneck.queue.variant: 'rfc8034' is unknown; did you mean 'rfc8033'?",
        ),
        (
            "[bottleneck]\nrate = '1Mbps'\nqueue = { kind = 'red', min = '15pkt' }",
            "x.toml:6: bottleneck.queue: max (15pkt) is not over min (15pkt); write a larger max",
        ),
        (
            "[bottleneck]\nrate = '1Mbps'\nqueue = { kind = 'red', max_probability = 1.5 }",
            "x.toml:6: bottleneck.queue.max_probability: 1.5 is not a probability from 0 to 1",
        ),
        (
            "[bottleneck]\nrate = '1Mbps'\nqueue = { kind = 'step', threshold = 20 }",
            "x.toml:6: bottleneck.queue.threshold: this is of type integer; write a number of packets such as \"100pkt\" or a range such as \"10pkt..100pkt\"",
        ),
        (
            "[bottleneck]\nrate = '1Mbps'\nqueue = { kind = 'fq_codel', flows = 1.5 }",
            "x.toml:6: bottleneck.queue.flows: 1.5 is not a whole number of queues from 1 to 65535",
        ),
        (
            "[bottleneck]\nrate = '1Mbps'\nrouter = 'abc'",
            "x.toml:6: bottleneck.router: 'abc' is unknown; there are: scheme",
        ),
        (
            "[bottleneck]\nrate = '1Mbps'\nqueue = { kind = 'abc' }\nrouter = 'scheme'",
            "x.toml:7: bottleneck.router: the queue is a router already, abc; remove one of the two",
        ),
        (
            "[bottleneck]\nrate = '1Mbps'\n[return]\nrouter = 'scheme'",
            "x.toml:7: return.router: a link without a rate is no bottleneck; remove it or write a rate",
        ),
        (
            "[bottleneck]\nrate = '1Mbps'\nqueue = { kind = 'xcp', alpha = 11 }",
            "x.toml:6: bottleneck.queue.alpha: 11 is not a gain from 0 to 10",
        ),
        (
            "[bottleneck]\nrate = '1Mbps'\nqueue = { kind = 'abc', tokens = 0 }",
            "x.toml:6: bottleneck.queue.tokens: 0 is not a number of tokens from 1 to 1000000",
        ),
        (
            "[bottleneck]\ntrace = 'a'\nqueue = { kind = 'codel', bytes = '1bdp' }",
            "x.toml:4: bottleneck: a queue in bdp needs a link with a rate; write packets or bytes such as \"100pkt\"",
        ),
        (
            "[bottleneck]\nrate = '1Mbps'\n[return]\nqueue = '9pkt'",
            "x.toml:7: return.queue: nothing waits for a link without a rate; remove it or write a rate",
        ),
        (
            "[bottleneck]\nrate = '1Mbps'\nmean = '2Mbps'",
            "x.toml:6: bottleneck.mean: only a trace is scaled; remove it or write trace = \"...\"",
        ),
        (
            "[bottleneck]\ntrace = 'a'\nmean = '1Mbps..2Mbps'",
            "x.toml:6: bottleneck.mean: this cannot be a range; write one rate such as \"12Mbps\"",
        ),
        (
            "[bottleneck]\nrate = '1Mbps'\nqueue = '5pkt..1bdp'",
            "x.toml:6: bottleneck.queue: '5pkt' is not a multiple of the bandwidth-delay product; write for example \"0.5bdp\"",
        ),
        (
            "[bottleneck]\ntrace = 'a'\nqueue = '1bdp'",
            "x.toml:4: bottleneck: a queue in bdp needs a link with a rate; write packets or bytes such as \"100pkt\"",
        ),
        (
            "packet_size = '1501B'\n[bottleneck]\ntrace = 'a'",
            "x.toml:1: the file: packets of 1501 bytes do not fit a trace's delivery opportunity; write at most 1500",
        ),
        (
            "[bottleneck]\nrate = '1Mbps'\n[[link]]\nfrom = 'a'",
            "x.toml:6: link: [[link]] and [topology] do not go with [bottleneck] and [return]; write all links as [[link]]",
        ),
    ] {
        assert_eq!(refused(&with_head(rest)), want);
    }
}

#[test]
fn traffic_and_changes() {
    let link = "[bottleneck]\nrate = '1Mbps'\n"; // lines 4 and 5
    for (rest, want) in [
        (
            "[[flow]]\ncount = 0",
            "x.toml:7: flow[0].count: 0 is out of range; write a whole number from 1 to 100000",
        ),
        (
            "[[flow]]\ncount = 90000\n[[flow]]\ncount = 90000",
            "x.toml:8: flow[1]: this makes 180000 flows; write at most 100000",
        ),
        (
            "[flow]\ncount = 1",
            "x.toml:6: flow: this must be a list of tables; write [[flow]]",
        ),
        (
            "[[flow]]\nstart = '5s'\nstop = '4s'",
            "x.toml:6: flow[0]: it may stop at 4s, which is not after its latest start at 5s; write a later stop",
        ),
        (
            "[[flow]]\nstart = '60s'",
            "x.toml:6: flow[0]: it starts after the run's end; write a start before 60s",
        ),
        (
            "[[flow]]\nbytes = '1MB'\nrate = '1Mbps'",
            "x.toml:6: flow[0]: a flow has bytes, or a rate, or on and off; remove the others",
        ),
        (
            "[[flow]]\non = '1s'",
            "x.toml:6: flow[0]: on and off go together; write both, such as on = \"1s\" and off = \"2s\"",
        ),
        (
            "[[flow]]\nfrom = 'sendr'",
            "x.toml:7: flow[0].from: no link makes the node 'sendr'; did you mean 'sender'?",
        ),
        (
            "[[flow]]\nfrom = 'receiver'",
            "x.toml:6: flow[0]: it runs from 'receiver' to 'receiver'; write two nodes",
        ),
        (
            "[[flow]]\nscheme = 'cubic'",
            "x.toml:6: flow[0]: every flow has a scheme of its own; leave it out where the scheme under test runs",
        ),
        (
            "[[cross]]\npattern = 'poisson'",
            "x.toml:6: cross[0]: rate is missing; write for example rate = \"1Mbps\"",
        ),
        (
            "[[cross]]\nrate = '1Mbps'\npattern = 'onoff'",
            "x.toml:6: cross[0]: pattern = \"onoff\" needs on and off, such as on = \"1s\"",
        ),
        (
            "[[at]]\ntime = '60s'\nrate = '1Mbps'",
            "x.toml:7: at[0].time: this is not before the run's end; write less than 60s",
        ),
        (
            "[[at]]\ntime = '5s'",
            "x.toml:6: at[0]: nothing changes; write a rate, a delay or a loss",
        ),
        (
            "[[at]]\ntime = '5s'\nlink = 'retrun'\nloss = 0.5",
            "x.toml:8: at[0].link: no link makes the link 'retrun'; did you mean 'return'?",
        ),
        (
            "[[flow]]\npresent = '1s..50s'",
            "x.toml:6: flow[0]: present and absent go together; write both, such as present = \"1s..50s\" and absent = \"1s..50s\"",
        ),
        (
            "[[flow]]\npresent = '0s..50s'\nabsent = '1s'",
            "x.toml:7: flow[0].present: '0s' is not a time from 1ms to 1000000s",
        ),
        (
            "[[flow]]\ncount = 100\npresent = '5ms..50s'\nabsent = '5ms'",
            "x.toml:1: the file: random events may number over 100000; write longer gaps, or seconds of at most 10",
        ),
        (
            "[[every]]\nrate = '1Mbps..9Mbps'",
            "x.toml:6: every[0]: gap is missing; write for example gap = \"1s..50s\"",
        ),
        (
            "[[every]]\ngap = '1us'\nrate = '1Mbps'",
            "x.toml:7: every[0].gap: '1us' is not a time from 1ms to 1000000s",
        ),
        (
            "[[every]]\ngap = '4s'",
            "x.toml:6: every[0]: nothing changes; write a rate, a delay or a loss",
        ),
        (
            "[[every]]\ngap = '30s..90s'\nstart = '30s'\nrate = '1Mbps'",
            "x.toml:6: every[0]: nothing happens before the run's end; write a start and a gap that are together under 60s",
        ),
        (
            "[[every]]\ngap = '1s'\nstart = '5s'\nstop = '5s'\nrate = '1Mbps'",
            "x.toml:6: every[0]: it may stop at 5s, which is not after its latest start at 5s; write a later stop",
        ),
        (
            "[[every]]\ngap = '1s'\nlink = 'bottelneck'\nrate = '1Mbps'",
            "x.toml:8: every[0].link: no link makes the link 'bottelneck'; did you mean 'bottleneck'?",
        ),
        (
            "[[every]]\ngap = '1s'\nevery = '1s'",
            "x.toml:8: every[0].every: unknown key; there are: gap, link, rate, delay, loss, start, stop",
        ),
        (
            "[varies]\nstart = '50ms'",
            "x.toml:7: varies.start: one value does not vary; write a range such as \"0ms..50ms\"",
        ),
        (
            "[varies]\ntrace_offset = true",
            "x.toml:7: varies.trace_offset: this is of type boolean; write a range of times such as \"0s..140s\", the trace's length",
        ),
        (
            "[varies]\ntrace_offset = '0s..9s'",
            "x.toml:6: varies: trace_offset shifts traces, and no link has one; remove it or write trace = \"...\"",
        ),
    ] {
        assert_eq!(refused(&with_head(&format!("{link}{rest}"))), want);
    }
}

#[test]
fn graphs() {
    for (rest, want) in [
        (
            "link = []",
            "x.toml:1: the file: 0 links; write from 1 to 10000",
        ),
        (
            "link = [3]",
            "x.toml:4: link[0]: this must be a list of tables; write [[link]]",
        ),
        (
            "[[link]]\nto = 'b'",
            "x.toml:4: link[0]: from is missing; write for example from = \"a\"",
        ),
        (
            "[[link]]\nfrom = 'b'\nto = 'b'",
            "x.toml:4: link[0]: it leads from 'b' to 'b'; connect two nodes",
        ),
        (
            "[[link]]\nfrom = 'a'\nto = 'b'\n[[link]]\nfrom = 'a'\nto = 'b'",
            "x.toml:7: link[1]: there are two links 'a-b'; give each a name of its own",
        ),
        (
            "[[link]]\nfrom = 'a'\nto = 'b'",
            "x.toml:1: the file: there is no flow; write [[flow]] with from and to",
        ),
        (
            "[[link]]\nfrom = 'a'\nto = 'b'\n[[flow]]\nfrom = 'a'\nto = 'b'",
            "x.toml:7: flow[0]: no links lead from 'b' to 'a'; add one, or write duplex = true",
        ),
        (
            "[[link]]\nfrom = 'a'\nto = 'b'\nrate = '1Mbps'\nduplex = true\n[[link]]\nfrom = 'b'\nto = 'c'\nrate = '1Mbps'\nqueue = '1bdp'\n[[flow]]\nfrom = 'a'\nto = 'b'",
            "x.toml:9: link[1]: a queue in bdp needs a flow over this link; write packets or bytes such as \"100pkt\"",
        ),
        (
            "[[link]]\nfrom = 'a'\nto = 'b'\nduplex = true\n[[flow]]\nfrom = 'a'",
            "x.toml:8: flow[0]: to is missing; write for example to = \"b\"",
        ),
        (
            "[[link]]\nfrom = 'a'\nto = 'b'\n[[link]]\nfrom = 'b'\nto = 'a'\nrate = '1Mbps'\n[[flow]]\nfrom = 'a'\nto = 'b'",
            "x.toml:11: flow[0]: no link from 'a' to 'b' limits it; give one a rate such as \"12Mbps\", or a trace",
        ),
    ] {
        assert_eq!(refused(&with_head(rest)), want);
    }
}

#[test]
fn forced_routes() {
    let link = |from, to| format!("[[link]]\nfrom = '{from}'\nto = '{to}'\nrate = '1Mbps'\n");
    let links = [
        link("a", "b"),
        link("b", "a"),
        link("b", "c"),
        link("c", "a"),
        link("a", "c"),
    ]
    .concat(); // lines 4 to 23
    for (rest, want) in [
        (
            "route = 'a'",
            "x.toml:25: flow[0].route: this is of type string; write a list of nodes such as [\"a\", \"b\"]",
        ),
        (
            "route = ['a']",
            "x.toml:25: flow[0].route: a route has two ends; write the nodes from first to last",
        ),
        (
            "route = ['a', 'd']",
            "x.toml:25: flow[0].route[1]: no link makes the node 'd'; did you mean 'a'?",
        ),
        (
            "route = ['a', 'b', 'a']",
            "x.toml:25: flow[0].route[2]: it passes 'a' twice; write each node once",
        ),
        (
            "route = ['a', 'b', 'c']",
            "x.toml:25: flow[0].route: no link leads from 'c' to 'b'; add one, or write duplex = true",
        ),
        (
            "route = ['a', 'b']\nto = 'b'",
            "x.toml:26: flow[0].to: the route says where it runs; remove this or the route",
        ),
    ] {
        assert_eq!(
            refused(&with_head(&format!("{links}[[flow]]\n{rest}"))),
            want
        );
    }
}

/// A shipped scenario with up to two lines lost or replaced.
fn nearly_right() -> impl Strategy<Value = String> {
    const LINES: &[&str] = &[
        "",
        "# comment",
        "rate = \"1Mbps..9Mbps\"",
        "rate = \"..\"",
        "trace = \"a\"",
        "delay = \"3ms..9ms\"",
        "delay = \"1000000000s\"",
        "queue = \"1bdp..2bdp\"",
        "queue = \"1pkt..9pkt\"",
        "queue = { kind = \"codel\", bytes = \"1bdp\", target = \"1ms..9ms\" }",
        "queue = { kind = \"red\", min = \"1pkt..9pkt\", weight = \"0..1\" }",
        "mean = \"3Mbps\"",
        "loss = 1e999",
        "loss = 0x1",
        "loss = { kind = \"gilbert-elliott\", to_bad = \"0..1\", to_good = 1 }",
        "jitter = \"1ns..9ms\"\nreorder = { probability = 1, delay = \"1ms..2ms\" }",
        "from = \"d\"",
        "duplex = false",
        "count = 7",
        "start = \"1s..2s\"",
        "stop = \"9s..10s\"",
        "bytes = \"3pkt..9pkt\"",
        "present = \"1s..2s\"\nabsent = \"1ms..2s\"",
        "[[every]]\ngap = \"1ms..2s\"\ndelay = \"3ms..9ms\"",
        "route = [\"a\", \"b\"]",
        "on = \"1s..2s\"\noff = \"1s\"",
        "[[flow]]",
        "[[cross]]",
        "[return]",
        "name = \"\u{e9}\\n\"",
        "[sweep]\nkey = \"bottleneck.queue\"\nvalues = [\"1pkt\", \"2pkt\"]",
        "[sweep]\nkey = \"flow[0]\"\nvalues = [1]",
    ];
    let edits = prop::collection::vec(
        (any::<prop::sample::Index>(), prop::sample::select(LINES)),
        0..3,
    );
    (prop::sample::select(shipped()), edits).prop_map(|(name, edits)| {
        let all = Scenario::load_all(name).unwrap();
        let mut lines: Vec<&str> = all[0].text().lines().collect();
        for (index, line) in edits {
            let at = index.index(lines.len());
            lines[at] = line;
        }
        lines.join("\n")
    })
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused_in_one_line(text in prop_oneof!["\\PC{0,60}", any::<String>(), nearly_right()], seed: u64) {
        match Scenario::parse_all(&text, "x.toml") {
            Ok(all) => for scenario in all {
                prop_assert_eq!(scenario.draw(seed), scenario.draw(seed));
            },
            Err(e) => prop_assert!(!e.to_string().contains(char::is_control), "{e}"),
        }
    }
}

#[test]
fn topologies() {
    for (rest, want) in [
        (
            "[topology]\nrate = '1Mbps'",
            "x.toml:4: topology: kind is missing; write for example kind = \"nsfnet\"",
        ),
        (
            "[topology]\nkind = 'nfsnet'",
            "x.toml:5: topology.kind: 'nfsnet' is unknown; did you mean 'nsfnet'?",
        ),
        (
            "[topology]\nkind = 'nsfnet'\nswitches = 7",
            "x.toml:6: topology.switches: NSFNET has 14; remove this",
        ),
        (
            "[topology]\nkind = 'chain'",
            "x.toml:4: topology: switches is missing; write for example switches = 7",
        ),
        (
            "[topology]\nkind = 'chain'\nswitches = 1",
            "x.toml:6: topology.switches: 1 is out of range; write a whole number from 2 to 200",
        ),
        (
            "[topology]\nkind = 'chain'\nswitches = 3\nload = '40%'",
            "x.toml:7: topology.load: a load is one share of the links' rate; write load = \"40%\" and a rate",
        ),
        (
            "[topology]\nkind = 'nsfnet'\nrate = '1Mbps'",
            "x.toml:1: the file: there is no flow; write [[flow]] with from and to",
        ),
        (
            "[topology]\nkind = 'chain'\nswitches = 3\n[bottleneck]\nrate = '1Mbps'",
            "x.toml:4: topology: [[link]] and [topology] do not go with [bottleneck] and [return]; write all links as [[link]]",
        ),
        (
            "[topology]\nkind = 'chain'\nswitches = 3\nrate = '1Mbps'\nload = 0.1\nhost_rate = '1Mbps'\n\
             [[flow]]\nfrom = 'sender'\nto = 's1'",
            "x.toml:4: topology: no flow under test crosses a link between switches, so none has a load",
        ),
    ] {
        assert_eq!(refused(&with_head(rest)), want);
    }
}
