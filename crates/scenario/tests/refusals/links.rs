//! Links, in the short form.

use crate::{refused, with_head};

#[test]
fn links_in_the_short_form() {
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
            "[bottleneck]\nrate = '1Mbps'\nmean = '2Mbps'",
            "x.toml:6: bottleneck.mean: only a trace is scaled; remove it or write trace = \"...\"",
        ),
        (
            "[bottleneck]\ntrace = 'a b'",
            "x.toml:5: bottleneck.trace: 'a b' is not a name of 1 to 100 letters, digits and -_./",
        ),
        (
            "[bottleneck]\ntrace = 'a'\nmean = '1Mbps..2Mbps'",
            "x.toml:6: bottleneck.mean: this cannot be a range; write one rate such as \"12Mbps\"",
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
