"""The delays of `headway shell`, measured by programs, are little more than the requested ones."""

import json
import statistics

import pytest

from test_shell import HEADWAY, NOBODY, PYTHON, SERVER, shell, traffic

pytestmark = pytest.mark.live


@pytest.mark.parametrize("peer", ["$HEADWAY_PEER", "$HEADWAY_PEER6"])
def test_the_round_trip_is_twice_the_delay(peer):
    (line,), summary = shell("--delay", "20ms", script=traffic("ping", peer, "50"))
    median, one_way = statistics.median(json.loads(line)), summary["up"]["delay_p50_ms"]
    print(f"{median:.2f} ms there and back, {one_way:.2f} ms there")
    assert median == pytest.approx(40, abs=1)
    assert one_way == pytest.approx(20, abs=0.5)


@pytest.mark.parametrize("depth", [2, 3])
def test_the_delays_of_nested_shells_add_up(depth):
    inner = " ".join((*HEADWAY, "shell", "--delay", "5ms", "--"))
    peers = [f"$HEADWAY_PEER{six}_{n}" for n in range(1, depth + 1) for six in ("", "6")]
    probes = "; ".join(traffic("ping", peer, "10") for peer in peers)
    script = f"{' '.join([inner] * (depth - 1))} sh -c '{probes}'"
    lines, _ = shell("--delay", "5ms", script=script)
    medians = [statistics.median(json.loads(line)) for line in lines]
    print(medians)
    expected = [10 * levels for levels in range(depth, 0, -1) for _ in ("4", "6")]
    assert medians == pytest.approx(expected, abs=depth)


@pytest.mark.usefixtures("tun_for_all")
def test_delays_are_exact_for_a_user_without_priority():
    inner = " ".join((*PYTHON, "shell", "--delay", "5ms", "--"))
    far = f"{inner} sh -c '{traffic('ping', '$HEADWAY_PEER_1', '20')}'"
    script = "; ".join((traffic("ping", "$HEADWAY_PEER", "20"), far, traffic("send", "$HEADWAY_PEER", "2")))
    options = ("--up", "12Mbps", "--delay", "10ms", "--queue", "50pkt", "--peer", SERVER)
    (one, two, rate), _ = shell(*options, script=script, headway=(*NOBODY, *PYTHON))
    medians = [statistics.median(json.loads(line)) for line in (one, two)]
    print(f"{medians} ms, {rate} of 12 Mbit/s")
    assert 20 < medians[0] < 25
    assert 30 < medians[1] < 40
    assert float(rate) > 10.5
