//! Graphs of links, routes through them, and topologies with a name.

use crate::{refused, with_head};

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
