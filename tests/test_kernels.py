"""The verdicts of `make test-kernels`, on possible outputs of a virtual machine.

No kernel boots here.
"""

import json
import re
from pathlib import Path

import pytest

import kernels

ROOT = Path(kernels.__file__).parent.parent
OWL = "headway_owl"
PINS = f"/sys/fs/bpf/headway /sys/fs/bpf/headway/{OWL} /sys/fs/bpf/headway/{OWL}/{OWL}-9-eaad66122b64"
LINK = f"{PINS} /sys/fs/bpf/headway/{OWL}/{OWL}-9-eaad66122b64/link"
OURS, OTHERS = f"reno cubic bbr {OWL}", "reno cubic bbr"
READY = '{"controllers":[{"name":"headway_owl"}],"event":"ready"}'
ADOPTS = 'INFO the agent adopted the pinned programs of an earlier agent name="headway_owl" flows=1'
ENDS_WITH_AGENT = (
    "INFO the programs end with this agent, because they cannot be pinned "
    'why="Linux has links of controllers, which can be pinned, since 6.4"'
)
TAKEN = "headwayd: another headwayd serves headway_owl (/sys/fs/bpf/headway)"
REGISTERED = "headwayd: cannot register headway_owl: is another headwayd running?"
SIX_TWELVE, SIX_THREE = "6.12.117+deb12-cloud-amd64", "6.3.0-1-cloud-amd64"


def flow(mbps):
    """The output of iperf3 about a flow."""
    return json.dumps({"end": {"sum_received": {"bits_per_second": mbps * 1e6}}})


def status(decisions=100, number=1, local="10.0.0.1:5", guard="policy", controller=OWL):
    """The status of an agent with one flow."""
    one = {
        "controller": controller,
        "decisions": decisions,
        "flow": number,
        "guard": guard,
        "local": local,
        "pacing_rate_mbps": None,
    }
    return json.dumps({"flows": [one], "counters": {"actions": decisions, "guard_trips": 0}})


NO_FLOWS = json.dumps({"flows": [], "counters": {"actions": 0, "guard_trips": 0}})
PINNED = {
    "log": "",
    "served": status(124),
    "another": TAKEN,
    "available kill": OURS,
    "pins kill": LINK,
    "again": READY + ADOPTS,
    "adopted": status(2402),
    "flow": flow(34.8),
    "ended": "0",
    "available term": OURS,
    "pins term": LINK,
    "unload term": "0 headway_owl is unloaded",
    "available unload term": OTHERS,
    "pins unload term": "",
    "unload kill": "0 headway_owl is unloaded",
    "available unload kill": OTHERS,
    "pins unload kill": "",
}
"""The output on Linux 6.12."""
UNPINNED = PINNED | {
    "log": ENDS_WITH_AGENT,
    "another": REGISTERED,
    "pins kill": "",
    "again": READY + ENDS_WITH_AGENT,
    "adopted": NO_FLOWS,
    "available term": OTHERS,
    "pins term": "",
    "unload term": "0 no controller of headwayd's is registered",
}
"""The output before Linux 6.4."""
ENDED = {
    "early": status(),
    "status": status(),
    "another": REGISTERED,
    "flow": flow(35),
    "ended": "0",
    "after_term": OTHERS,
    "after_kill": OTHERS,
    "again": READY,
    "flow_of_killed": flow(30),
    "after_again": OTHERS,
}
"""The output of a trial with --no-keep on Linux 6.12."""


def judged(trial, release=SIX_TWELVE, what="headway_owl, pinned"):
    """The verdict of a trial, and the observations."""
    kernel = {"accelerator": "tcg", "release": release, "complaints": "", "end": ""}
    (row,) = kernels.judged({"kernel": kernel, "cubic": {"flow": flow(38)}, what: trial})
    assert row.what == what
    return row.verdict, row.why


def fails(trial, release, changes, why, what="headway_owl, pinned"):
    """With these changes it fails, and with no other fault."""
    verdict, said = judged(trial | changes, release, what)
    assert verdict == "FAILS"
    wrong, _ = re.split(r"; (?=\d+\.\d Mbit/s)", said)
    assert wrong.startswith(why)
    assert "; " not in wrong


def test_programs_that_are_adopted_and_unloaded_work():
    seen = "34.8 Mbit/s (Cubic 38.0); 124 decisions, 2402 once adopted; unloaded"
    assert judged(PINNED) == ("works", seen)
    # This is the oldest kernel with links.
    assert judged(PINNED, "6.4.0-1-cloud-amd64") == ("works", seen)


def test_on_a_kernel_without_links_the_agent_says_why_nothing_is_pinned():
    why = "Linux has links of controllers, which can be pinned, since 6.4"
    assert judged(UNPINNED, SIX_THREE) == ("works", f"34.8 Mbit/s (Cubic 38.0); {why}; unloaded")


UNLOADED = [
    ({f"unload {end}": said}, f"unload ({end}) ends with {said}")
    for end in ("term", "kill")
    for said in ("1 headway_owl is unloaded", "0 headway_owl stays: an agent serves it")
]
UNLOADED += [
    ({f"{what} unload {end}": stays}, f"unload ({end}) leaves {named}")
    for end in ("term", "kill")
    for what, stays, named in (("available", OURS, "the controller"), ("pins", PINS, PINS))
]
KILLED = [
    ({"served": NO_FLOWS}, "serves no flow"),
    ({"served": status(decisions=0)}, "serves no flow"),
    ({"available kill": OTHERS}, "is gone once its agent was killed"),
    ({"flow": flow(0.5)}, "stalls"),
    ({"flow": ""}, "stalls"),
    ({"ended": "137"}, "ended with 137"),
    ({"another": "headwayd: /tmp/another: it cannot be made"}, "lets another take its name"),
]


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        *UNLOADED,
        *KILLED,
        ({"another": REGISTERED}, "lets another take its name"),
        ({"pins kill": PINS}, "pins no link, but /sys/fs/bpf/headway"),
        ({"pins kill": ""}, "pins no link, but "),
        ({"pins kill": LINK.replace("/sys/fs/bpf", "/tmp")}, "pins no link, but /tmp"),
        ({"again": READY}, "is not adopted"),
        ({"again": ADOPTS}, "does not begin again"),
        ({"adopted": NO_FLOWS}, "does not decide again"),
        ({"adopted": status(decisions=0)}, "does not decide again"),
        ({"adopted": status(guard="cubic")}, "does not decide again"),
        ({"adopted": status(local="10.0.0.1:6")}, "does not decide again"),
        ({"adopted": status(number=2)}, "does not decide again"),
        ({"adopted": status(controller="headway_rate")}, "does not decide again"),
        ({"available term": OTHERS}, "is gone after its end"),
        ({"pins term": ""}, "pins no link after its end"),
    ],
)
def test_pinned_programs_fail_in_each_particular(changes, why):
    fails(PINNED, SIX_TWELVE, changes, why)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        *UNLOADED,
        *KILLED,
        ({"log": ""}, "does not say why it pins nothing"),
        ({"log": ENDS_WITH_AGENT.replace("since 6.4", "")}, "does not say why it pins nothing"),
        ({"another": TAKEN}, "lets another take its name"),
        ({"pins kill": LINK}, f"pins {LINK}"),
        ({"pins term": PINS}, f"pins {PINS}"),
        ({"again": ENDS_WITH_AGENT}, "does not begin again"),
        ({"adopted": status()}, "decides again for the flow of the killed agent"),
        ({"available term": OURS}, "stays registered after its end"),
        ({"unload term": "0 headway_owl is unloaded"}, "unload (term) ends with 0 headway_owl is unloaded"),
    ],
)
def test_programs_before_links_fail_in_each_particular(changes, why):
    fails(UNPINNED, SIX_THREE, changes, why)


@pytest.mark.parametrize(("release", "trial"), [(SIX_TWELVE, PINNED), (SIX_THREE, UNPINNED)])
def test_a_missing_output_of_a_virtual_machine_is_a_failure(release, trial):
    for key in trial:
        less = {other: said for other, said in trial.items() if other != key}
        assert judged(less, release) == ("FAILS", f"it says too little: KeyError({key!r})")


def test_an_agent_that_does_not_start_is_a_failure():
    assert judged({"refused": "headwayd: no"}) == ("FAILS", "headwayd: no")


def test_with_no_keep_links_remove_a_killed_agents_controller():
    """Before Linux 6.4 it stays until the next agent."""
    what = "headway_owl, cgroup"
    stays = {"after_kill": OURS}
    assert judged(ENDED, SIX_TWELVE, what)[0] == "works"
    fails(ENDED, SIX_TWELVE, stays, "stays registered once its agent was killed", what)
    verdict, seen = judged(ENDED | stays, SIX_THREE, what)
    assert verdict == "works"
    assert seen.endswith("registered until the next agent")
    fails(ENDED, SIX_THREE, {}, "is gone once its agent was killed", what)


def test_with_no_keep_a_controller_ends_with_its_agent():
    what = "headway_owl, cgroup"
    for key in ("after_term", "after_again"):
        fails(ENDED, SIX_TWELVE, {key: OURS}, "stays registered after its end", what)
    # The controller is pinned, which an agent with --no-keep never does.
    fails(ENDED, SIX_TWELVE, {"another": TAKEN}, "lets another take its name", what)


@pytest.mark.parametrize(
    "words",
    [
        "is another headwayd running?",
        "another headwayd serves {name} ",
        "adopted the pinned programs of an earlier agent",
        "the programs end with this agent, because they cannot be pinned",
        "Linux has links of controllers, which can be pinned, since 6.4",
        "{name} is unloaded\\n",
        "no controller of headwayd's is registered\\n",
    ],
)
def test_headwayds_messages_match_those_that_the_trials_expect(words):
    """If the messages change there, no kernel passes."""
    sources = (ROOT / "crates/headwayd/src").rglob("*.rs")
    assert any(words in source.read_text() for source in sources)
