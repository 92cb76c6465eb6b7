"""`headway reproduce --ray` makes the same runs as on one machine."""

import pytest

import headway
from same_results import store_of

FIG8 = ("rax", "fig8")


def test_a_figure_on_a_cluster_has_the_same_runs(ray, tmp_path):
    one, many = tmp_path / "one", tmp_path / "many"
    alone = headway.reproduce(*FIG8, quick=True, out=one)
    made = headway.reproduce(*FIG8, quick=True, out=many, ray="auto")
    assert alone.results == made.results
    assert store_of(one) == store_of(many)
    assert len(ray.sent) == len(store_of(many)) > 0
    for name in ("claims.json", "fig8.json", "fig8.svg"):
        assert (one / name).read_bytes() == (many / name).read_bytes(), name


def test_an_interrupted_figure_continues(ray, tmp_path):
    def lost_third(carry_out):
        if len(ray.answers) == 2:
            raise KeyboardInterrupt
        return carry_out()

    ray.around = lost_third
    with pytest.raises(headway.Interrupted, match="2 of 24 runs finished"):
        headway.reproduce(*FIG8, quick=True, out=tmp_path, ray="auto")
    assert len(store_of(tmp_path)) == 2
    assert len(ray.cancelled) + 2 == len(ray.sent)
    before = len(ray.sent)
    ray.around = lambda carry_out: carry_out()
    headway.reproduce(*FIG8, quick=True, out=tmp_path, ray="auto")
    assert len(ray.sent) - before == 22


@pytest.mark.parametrize(
    ("figure", "options", "why"),
    [
        ("fig8", {"logs": True}, "^logs: packet logs are written on this machine only; leave out ray$"),
        ("all", {"world": "kernel"}, "^ray: runs of world kernel stay on this machine, whose kernel they test;"),
    ],
)
def test_figures_that_cannot_be_sent_to_other_machines_are_refused(ray, tmp_path, figure, options, why):
    with pytest.raises(headway.Error, match=why):
        headway.reproduce("rax", figure, quick=True, out=tmp_path, ray="auto", **options)
    assert ray.inits == []
