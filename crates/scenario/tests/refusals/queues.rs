//! Queues and routers.

use crate::{refused, with_head};

#[test]
fn queues_and_routers() {
    for (rest, want) in [
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
            "[bottleneck]\nrate = '1Mbps'\nqueue = '5pkt..1bdp'",
            "x.toml:6: bottleneck.queue: '5pkt' is not a multiple of the bandwidth-delay product; write for example \"0.5bdp\"",
        ),
        (
            "[bottleneck]\ntrace = 'a'\nqueue = '1bdp'",
            "x.toml:4: bottleneck: a queue in bdp needs a link with a rate; write packets or bytes such as \"100pkt\"",
        ),
    ] {
        assert_eq!(refused(&with_head(rest)), want);
    }
}
