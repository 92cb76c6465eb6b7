//! Flows, cross traffic, and changes.

use crate::{refused, with_head};

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
            "[[flow]]\nreceive_window = '1000B'",
            "x.toml:7: flow[0].receive_window: a receive window smaller than a packet lets none through; write at least \"1500B\" or \"1pkt\"",
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
            "[[flow]]\n[[flow]]\nscheme = 'python:mine.py'",
            "x.toml:8: flow[1].scheme: a scenario cannot name a Python class; give it as --schemes python:FILE",
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
