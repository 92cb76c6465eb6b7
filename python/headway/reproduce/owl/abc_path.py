"""The path of owl-nsfnet with ABC's routers at some of its switches, link by link.

In a scenario's `[topology]` all links have a router or none. This is the same path written out:
seven switches, six links of 100 Mbit/s and 2.5 ms with 375 kB of queue and 40% of UDP each, hosts
at 1 Gbit/s.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from headway.reproduce.scenarios import of_text

if TYPE_CHECKING:
    from headway._native import Scenario

SWITCHES = ("s0", "s3", "s4", "s5", "s13", "s10", "s11")


def abc_path(routers: int) -> Scenario:
    """Returns the path on which `routers` of the switches, 1 to 7, mark; they are evenly spread.

    Each marks on the link that it sends the data to.
    """
    marking = {SWITCHES[(2 * k + 1) * len(SWITCHES) // (2 * routers)] for k in range(routers)}
    hosts = [f"h{name[1:]}" for name in SWITCHES]
    parts = [
        f'schema = 1\nname = "owl-nsfnet-abc:routers={routers}"\npaper = "owl"\nseconds = 100\n'
        f'description = "The path of owl-nsfnet with {routers} of 7 switches marking"\n'
    ]
    for host, switch in zip(hosts, SWITCHES, strict=True):
        # The last switch sends the data to its host.
        last = switch == SWITCHES[-1] and switch in marking
        parts.append(_link(switch, host, "1Gbps", "0ms", router=last) + _link(host, switch, "1Gbps", "0ms"))
    for (a, b), (sender, receiver) in zip(pairwise(SWITCHES), pairwise(hosts), strict=True):
        parts.append(_link(a, b, "100Mbps", "2.5ms", router=a in marking) + _link(b, a, "100Mbps", "2.5ms"))
        parts.append(f'[[cross]]\nfrom = "{sender}"\nto = "{receiver}"\nrate = "40Mbps"\npattern = "poisson"\n')
    route = ", ".join(f'"{node}"' for node in (hosts[0], *SWITCHES, hosts[-1]))
    parts.append(f'[[flow]]\nroute = [{route}]\n[varies]\nstart = "0ms..30ms"\n')
    return of_text("\n".join(parts))


def _link(a: str, b: str, rate: str, delay: str, *, router: bool = False) -> str:
    queue = 'queue = "375kB"\n' if delay != "0ms" or router else ""
    marks = 'router = "scheme"\n' if router else ""
    return f'[[link]]\nfrom = "{a}"\nto = "{b}"\nrate = "{rate}"\ndelay = "{delay}"\n{queue}{marks}\n'
