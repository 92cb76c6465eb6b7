"""Schemes keep their look, and looks can be distinguished also with colour blindness."""

import itertools

import numpy as np
import pytest
from colorspacious import cspace_convert

from headway.report.style import COLOURS, FIXED, MARKERS, names_shown, styles

KNOWN = list(FIXED)
SIGHTS = (None, "deuteranomaly", "protanomaly", "tritanomaly")
LEAST_APART = 13.0
"""A distance in CAM02-UCS. About 2 can just be noticed. Okabe and Ito's own colours, less yellow,
reach 11."""


def rgb(colour):
    return np.array([int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)])


def seen(colours, sight):
    """The colours as a person with that vision sees them, at full severity (Machado et al.

    2009).
    """
    values = np.array([rgb(c) for c in colours])
    if sight:
        space = {"name": "sRGB1+CVD", "cvd_type": sight, "severity": 100}
        values = np.clip(cspace_convert(values, space, "sRGB1"), 0, 1)
    return cspace_convert(values, "sRGB1", "CAM02-UCS")


def contrast(one, other):
    """The contrast that WCAG 2.2 requires."""

    def luminance(colour):
        channels = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb(colour)]
        return np.dot(channels, (0.2126, 0.7152, 0.0722))

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("sight", SIGHTS)
@pytest.mark.parametrize("paper", [0, 1])
def test_any_two_colours_can_be_distinguished(sight, paper):
    names = list(COLOURS)
    places = seen([COLOURS[name][paper] for name in names], sight)
    apart = {
        (a, b): np.linalg.norm(places[i] - places[j])
        for (i, a), (j, b) in itertools.combinations(enumerate(names), 2)
    }
    assert min(apart.values()) >= LEAST_APART, min(apart, key=apart.get)


def test_the_simulation_confuses_colours_that_are_known_to_be_confused():
    """The check can fail: pure red and a dark olive look similar to deuteranopes."""
    one, other = seen(["#a05000", "#6a6a00"], "deuteranomaly")
    assert (
        np.linalg.norm(one - other) < LEAST_APART < np.linalg.norm(np.subtract(*seen(["#a05000", "#6a6a00"], None)))
    )


@pytest.mark.parametrize(("paper", "colour"), [(0, "#ffffff"), (1, "#14181c")])
def test_marks_reach_the_contrast_that_wcag_asks_of_graphics(paper, colour):
    for name, pair in COLOURS.items():
        assert contrast(pair[paper], colour) >= 2.995, name


def test_every_known_scheme_has_a_different_look():
    found = styles(KNOWN)
    assert len({(s.colour, s.marker) for s in found.values()}) == len(KNOWN) >= 24
    assert len({s.key for s in found.values()}) == len(KNOWN)


def test_a_scheme_looks_the_same_in_any_company_and_order():
    company = [*KNOWN, "my-scheme", "bbr:probe=1", "copa:delta=0.1"]
    together = styles(company)
    assert styles(company[::-1]) == together
    for name in KNOWN:
        assert styles([name, "another"])[name] == together[name]
    assert styles(["my-scheme"])["my-scheme"] == styles(["cubic", "my-scheme"])["my-scheme"]


def test_an_unknown_name_never_takes_a_known_look():
    looks = {styles([name])[name] for name in KNOWN}
    assert all(styles([name])[name] not in looks for name in (f"scheme-{k}" for k in range(200)))


def test_variants_share_a_colour_and_differ_in_marker():
    found = styles(["fixed-window", "fixed-window:window=20", "fixed-window:window=100", "fixed-window:window=20"])
    assert len(found) == 3
    assert len({s.colour for s in found.values()}) == 1
    assert len({s.marker for s in found.values()}) == 3
    for scheme, style in styles(["fixed-window:window=20"]).items():
        assert found[scheme].colour == style.colour


def test_there_are_looks_for_more_schemes_than_the_known_ones():
    many = [f"fixed-window:window={k}" for k in range(len(COLOURS) * len(MARKERS))]
    assert len({(s.colour, s.marker) for s in styles(many).values()}) == len(many)
    assert len(styles([*many, "one-more"])) == len(many) + 1


def test_tables_show_short_names_of_schemes():
    several = "owl:model=v1:model=/a/owl-v1-seed-2:model=/a/owl-v1-seed-3"
    long = "learned:model=/home/somebody/out/train/quick-v1-seed-1/quick-v1"
    assert names_shown(["cubic", several, long]) == {
        "cubic": "cubic",
        several: "owl (3 models)",
        long: "learned:model=\u2026/quick-v1",
    }
    # Two folders of that name are distinguished.
    other = long.replace("seed-1", "seed-2")
    assert names_shown([long, other]) == {long: long, other: other}
