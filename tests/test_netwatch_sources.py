"""What `headway netwatch run` watches: periods, ages and sources, and what is refused."""

import pytest

from headway._native import UsageError
from headway.netwatch.netlink import NetlinkSource
from headway.netwatch.simulated import SimulatedSource
from headway.netwatch.sources import real, simulated

NAME = "owl-nsfnet:known=4"
TOPOLOGY = """
[netwatch]
period = "200ms"
stale_after = "5s"

[[switch]]
name = "here"
interfaces = ["lo"]

[[switch]]
name = "dark"
known = false
interfaces = ["wlan9"]

[[link]]
ends = ["here:lo", "dark:wlan9"]
capacity = "10Gbps"

[[path]]
name = "loop"
switches = ["here", "dark"]
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "topology.toml"
    path.write_text(TOPOLOGY)
    return path


@pytest.mark.parametrize(
    ("given", "period_s", "stale_after_s"),
    [
        ({}, 1.0, 3.0),
        ({"period_s": 0.5}, 0.5, 1.5),
        ({"period_s": 0.5, "stale_after_s": 2.0}, 0.5, 2.0),
        # A watch counts real time, which is a tenth of the simulated one.
        ({"speed": 10.0}, 0.1, 0.3),
    ],
)
def test_a_simulated_network_has_the_periods_that_are_given(given, period_s, stale_after_s):
    watched = simulated(NAME, "cubic", **given)
    assert watched.topology.period_s == pytest.approx(period_s)
    assert watched.topology.stale_after_s == pytest.approx(stale_after_s)
    assert [type(source) for source in watched.sources] == [SimulatedSource]
    assert sum(switch.known for switch in watched.topology.switches.values()) == 4


@pytest.mark.parametrize(
    ("given", "period_s", "stale_after_s"),
    [
        ({}, 0.2, 5.0),
        # The age of the file is that of the period of the file.
        ({"period_s": 1.0}, 1.0, 3.0),
        ({"stale_after_s": 0.4}, 0.2, 0.4),
    ],
)
def test_a_topology_file_has_the_periods_that_are_given(file, given, period_s, stale_after_s):
    watched = real(file, **given)
    assert (watched.topology.period_s, watched.topology.stale_after_s) == (period_s, stale_after_s)


def test_only_known_switches_are_read(file):
    (source,) = real(file).sources
    assert isinstance(source, NetlinkSource)
    assert "here" in source.name


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"period_s": 0.01}, r"^--period 0\.01s: must be from 50ms to 3600s$"),
        ({"stale_after_s": 0.1}, r"^--stale-after 0\.1s: shorter than the period, "),
    ],
)
def test_a_time_that_cannot_be_is_refused(file, given, says):
    for watch in (lambda: real(file, **given), lambda: simulated(NAME, "cubic", **given)):
        with pytest.raises(UsageError, match=says):
            watch()
