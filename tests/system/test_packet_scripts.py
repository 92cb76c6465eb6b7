"""The answers of kernel sockets, packet by packet.

Cubic answers by its RFCs, and our controllers without an agent answer like Cubic.
docs/packet-scripts.md describes each script and its expectations. These tests judge only counts,
over round trips so long that a busy machine changes no count. tests/live/test_packet_timing.py has
the scripts that depend on time.
"""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack

import pytest

import hystart
import needs
from machine import MOSTLY_UNJUDGED
from packets.controllers import BASES, NAMES, UnavailableError, without_agent
from packets.flow import Flow
from packets.play import LateError, differences, play
from packets.scripts import BBR, CUBIC, HYSTART_OFF

pytestmark = [pytest.mark.system, pytest.mark.controllers]

TIMED = {"hystart_by_delay", "hystart_by_train", "cubic_curve", "reno_friendly_region", "tail_loss"}
"""Scripts whose expectations depend on time."""
SCRIPTS = {("cubic", name): script.slowly() for name, script in (CUBIC | HYSTART_OFF).items() if name not in TIMED}
SCRIPTS["bbr", "bbr_timeout"] = BBR["bbr_timeout"].slowly()
OURS = [
    (controller, name) for controller in NAMES for base, name in SCRIPTS if BASES.get(controller, "cubic") == base
]
TRIES = 3
AT_ONCE = 16
"""The number of plays at a time, which mostly wait."""


class Plays:
    """Plays scripts in parallel, each once for each controller."""

    def __init__(self, pool: ThreadPoolExecutor) -> None:
        self._pool = pool
        self._plays: dict[tuple[str, str], Future[Flow]] = {}

    def begin(self, controller: str, name: str) -> Future[Flow]:
        """A play that has begun, or waits for its turn."""
        key = (controller, name)
        if key not in self._plays:
            base = BASES.get(controller, "bbr" if controller == "bbr" else "cubic")
            self._plays[key] = self._pool.submit(play, SCRIPTS[base, name], controller)
        return self._plays[key]

    def flow(self, controller: str, name: str) -> Flow:
        """The result of a play. Skips the test if the machine was too busy in each of `TRIES`."""
        for left in reversed(range(TRIES)):
            try:
                return self.begin(controller, name).result()
            except LateError as late:
                if not left:
                    pytest.skip(f"not judged: {late}")
                del self._plays[controller, name]
        raise AssertionError("unreachable")

    def not_judged(self) -> int:
        """The next plays that have ended."""
        ended = [one for one in self._plays.values() if one.done() and not one.cancelled()]
        return sum(isinstance(one.exception(), LateError) for one in ended)

    def __len__(self) -> int:
        return len(self._plays)


@pytest.fixture(scope="module")
def ours() -> Iterator[str]:
    """Registers our controllers, without an agent. Yields the reason if they are not available."""
    with ExitStack() as stack:
        why = ""
        try:
            stack.enter_context(without_agent())
        except UnavailableError as error:
            why = str(error)
        yield why


@pytest.fixture(scope="module")
def plays(request, ours) -> Iterator[Plays]:
    """All plays of the chosen tests, which start at once."""
    chosen = [item for item in request.session.items if item.path == request.path]
    with ExitStack() as stack:
        try:
            stack.enter_context(hystart.switched(on=False))
        except OSError as why:
            needs.skip("bpf", f"{hystart.PARAMETER}: {why.strerror}; run as root where /sys is not read-only")
        pool = stack.enter_context(ThreadPoolExecutor(AT_ONCE))
        stack.callback(pool.shutdown, cancel_futures=True)
        found = Plays(pool)
        for item in chosen:
            if callspec := getattr(item, "callspec", None):
                controller, name = callspec.params["controller"], callspec.params["name"]
                if controller not in NAMES or not ours:
                    found.begin(controller, name)
        yield found
        not_judged = f"the machine was too busy to judge {found.not_judged()} of {len(found)} plays"
        with request.config.pluginmanager.get_plugin("capturemanager").global_and_fixture_disabled():
            print(f"\npacket scripts: {not_judged}")
        if found.not_judged() > len(found) / 2:
            request.config.stash[MOSTLY_UNJUDGED] = True


@pytest.mark.parametrize(("controller", "name"), SCRIPTS)
def test_the_kernel_responds_as_the_rfcs_say(plays, controller, name, request):
    if controller == "bbr":
        request.getfixturevalue("bbr")
    plays.flow(controller, name)


@pytest.mark.parametrize(("controller", "name"), OURS)
def test_our_controllers_without_an_agent_match_the_base_controller(plays, ours, controller, name):
    if ours:
        needs.skip("bpf", f"our controllers without an agent: {ours}")
    base = BASES.get(controller, "cubic")
    flow, like = plays.flow(controller, name), plays.flow(base, name)
    found = differences(flow, like, SCRIPTS[base, name].slack)
    assert not found, f"{controller} answers otherwise than {base}:\n" + "\n".join(found)


def test_a_difference_from_the_script_is_found(plays):
    """Reno differs from Cubic, because it halves."""
    script = SCRIPTS["cubic", "one_loss"]
    with script.flow("reno") as flow, pytest.raises((AssertionError, ValueError)):
        script.run(flow)
    like = plays.flow("cubic", "one_loss")
    assert differences(flow, like, 0)
    assert differences(flow, like, 2)
