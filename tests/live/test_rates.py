"""The rates of `headway shell`, measured by programs. TCP gets nearly all of them."""

import pytest

from test_shell import SERVER, shell, traffic

pytestmark = pytest.mark.live


@pytest.mark.parametrize("peer", ["$HEADWAY_PEER", "$HEADWAY_PEER6"])
def test_tcp_gets_the_rate_of_its_direction(peer):
    both = f"{traffic('send', peer, '3')}; {traffic('receive', peer, '3')}"
    options = ("--up", "12Mbps", "--down", "24Mbps", "--delay", "5ms", "--queue", "50pkt", "--peer", SERVER)
    (up, down), _ = shell(*options, script=both)
    print(f"{up} of 12 and {down} of 24 Mbit/s")
    # TCP has 1448 of the 1500 bytes of a packet, and 20 fewer with IPv6.
    assert 11 < float(up) < 11.7
    assert 22 < float(down) < 23.4


def test_a_trace_gives_its_rate(tmp_path):
    """One opportunity each millisecond is 12 Mbit/s."""
    (tmp_path / "ms.trace").write_text("".join(f"{ms}\n" for ms in range(1, 101)))
    options = ("--up", tmp_path / "ms.trace", "--queue", "50pkt", "--peer", SERVER)
    (rate,), _ = shell(*options, script=traffic("send", "$HEADWAY_PEER", "2"))
    print(f"{rate} of 12 Mbit/s")
    assert 11 < float(rate) < 11.7


def test_two_hosts_share_a_bottleneck():
    options = ("--up", "12Mbps", "--delay", "5ms", "--queue", "30pkt", "--hosts", "2", "--peer", SERVER)
    lines, _ = shell(*options, script=traffic("send", "$HEADWAY_PEER", "4"))
    rates = [float(line) for line in lines]
    print(f"{rates} of 12 Mbit/s")
    assert 10.5 < sum(rates) < 12.5
    assert min(rates) > 1.5
