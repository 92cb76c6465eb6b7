"""The inputs of Owl's figures: its ablations, its buffers and its paths."""

import subprocess
import sys

import pytest

from headway._native import Batch, Scenario, UsageError, check_scheme
from headway.reproduce.lab import Lab, MissingError, family
from headway.reproduce.owl.abc_path import SWITCHES, abc_path
from headway.reproduce.owl.contenders import ablation, online
from headway.reproduce.owl.design import ACTIONS, HISTORIES, LAYERS, RULE, STATES, WEIGHTS
from headway.reproduce.owl.fairness import DELTAS
from headway.reproduce.scenarios import of_text, own, path_of
from headway.train.ablation import find


def test_an_ablation_is_read_from_the_folder_that_training_writes(tmp_path):
    lab = Lab(models=tmp_path)
    with pytest.raises(MissingError, match=r"headway train owl --ablation delta-0\.5$"):
        ablation(lab, "delta-0.5")
    folder = tmp_path / "owl-delta-05-v1-seed-3" / "owl-delta-05-v1"
    folder.mkdir(parents=True)
    assert ablation(lab, "delta-0.5").startswith(f"learned:model={folder}")


def test_an_ablation_of_other_settings_or_scenarios_is_refused(tmp_path):
    folder = tmp_path / "owl-no-mask-v1"
    folder.mkdir()

    def card(settings, scenario):
        (folder / "card.toml").write_text(
            f'[training]\nconfig_sha256 = "{settings}"\nscenarios = {{ owl-nash-training = "{scenario}" }}\n'
            "validation_scenarios = {}\n"
        )
        return ablation(Lab(models=tmp_path), "no-mask")

    settings, scenario = find("owl", "no-mask").hash, Scenario.load("owl-nash-training").hash
    assert card(settings, scenario).startswith(f"learned:model={folder}")
    with pytest.raises(
        MissingError, match="other settings than here; remove it, then headway train owl --ablation"
    ):
        card("0" * 64, scenario)
    with pytest.raises(MissingError, match="other scenarios than here"):
        card(settings, "0" * 16)
    (folder / "card.toml").write_text("[training]\nscenarios = {}\nvalidation_scenarios = {}\n")
    assert ablation(Lab(models=tmp_path), "no-mask").startswith("learned:")


def test_figures_do_not_import_training():
    code = (
        "import sys; sys.modules |= dict.fromkeys(['tomli_w', 'gymnasium', 'torch', 'safetensors', 'onnx']);"
        "from headway.reproduce import paper; print(len(paper('owl').figures))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("12\n", "")


def test_every_ablation_that_figures_take_can_be_trained():
    from headway.train import ablation

    taken = {name for named in (STATES, ACTIONS, HISTORIES, LAYERS, WEIGHTS, RULE) for name in named.values()}
    assert {"no-mask", *(f"delta-{delta}" for delta in DELTAS), *taken} <= set(ablation.names("owl"))


def test_online_owl_is_compared_and_ablations_have_the_same_latency(tmp_path):
    lab = Lab(models=tmp_path)
    assert [check_scheme(spec) for spec in online(lab).values()] == ["owl:online=true"]
    assert online(Lab(stand_ins={"owl": "aurora"})) == {}
    folder = tmp_path / "owl-delta-05-v1"
    folder.mkdir()
    assert ablation(lab, "delta-0.5") == f"learned:model={folder}:latency=0.026ms"


# -- Owl's buffers and paths --


def test_the_path_of_abc_has_the_figures_number_of_routers():
    for routers in range(1, 8):
        scenario = abc_path(routers)
        assert scenario.text.count('router = "scheme"') == routers
        assert scenario.text.count('rate = "40Mbps"') == len(SWITCHES) - 1
    route = ", ".join(f'"{s}"' for s in SWITCHES)
    assert route in abc_path(3).text
    assert route in Scenario.load("owl-nsfnet:known=3").text


def test_the_explicit_path_behaves_like_the_topology_with_all_routers_known():
    text = Scenario.load("owl-nsfnet:known=7").text
    everywhere = of_text(text.replace('load = "40%"', 'load = "40%"\nrouter = "scheme"'))
    batch = Batch([everywhere, abc_path(7)], ["abc"], runs=3, seconds=5, grid_ms=None)
    batch.start()
    while not batch.wait(1):
        pass
    rows = [row for row in batch.results() if row["flow"] == -1]
    rates, rtts = ([row[name] for row in rows] for name in ("throughput_mbps", "rtt_mean_ms"))
    # Their cross traffic is drawn under other names.
    assert sum(rates[:3]) == pytest.approx(sum(rates[3:]), rel=0.02)
    assert sum(rtts[:3]) == pytest.approx(sum(rtts[3:]), rel=0.02)


def test_the_scenarios_with_unknown_paths_differ_in_nothing_else():
    for value, scenario in family("owl-random").items():
        other = family(path_of("owl-random-unknown"))[value]

        def told(text):
            lines = [
                line for line in text.splitlines() if line and not line.startswith(("#", "name", "description"))
            ]
            return [line for line in lines if not line.startswith("known")]

        assert told(scenario.text) == told(other.text)
        assert 'known = "0%"' in other.text
    assert own("owl-friendly:scheme=bbr").flows == 2
    with pytest.raises(UsageError, match="owl-friendly:scheme=copa"):
        own("owl-friendly:scheme=copa")


def test_families_are_in_order_and_in_one_unit():
    assert list(family("owl-buffer")) == [4.5, 15, 45, 75, 150, 300, 750, 3000]
    with pytest.raises(UsageError, match="do not differ in a number"):
        family("owl-geni:count=2")
