"""`headway gap`: emulated runs are near the simulated ones."""

import pytest

from test_gap_in_both_worlds import ASKED, kept

pytestmark = pytest.mark.live


def test_emulated_runs_are_near_the_simulated_ones(run, tmp_path):
    done = run("gap", *ASKED, "--seconds", "5", "--json", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    runs = kept(tmp_path)
    for scheme in ("cubic", "copa"):
        sim, emu = runs["sim", scheme], runs["emu", scheme]
        for metric, near in (("throughput_mbps", 0.2), ("delay_p95_ms", 0.3)):
            print(f"{scheme}: {metric} is {emu[metric]:.2f}, simulated {sim[metric]:.2f}")
            # docs/gap.md has the exact differences.
            assert emu[metric] == pytest.approx(sim[metric], rel=near)
