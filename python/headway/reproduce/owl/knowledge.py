"""Section VII-B: the value of knowing more of the network. Figure 6."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from headway.reproduce.charts import looks_of, over, titled
from headway.reproduce.claim import PERCENT, Aim, judge
from headway.reproduce.figure import Figure, FigureResult
from headway.reproduce.lab import family
from headway.reproduce.owl.abc_path import SWITCHES, abc_path
from headway.reproduce.owl.contenders import (
    ABC_RULE,
    BASE,
    IMITATION,
    RULE_ALONE,
    TRAIN_FIRST,
    ablations,
    beats_rule,
    with_rule,
)
from headway.reproduce.scenarios import path_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from headway.report.svg import Spec
    from headway.reproduce.claim import Claim
    from headway.reproduce.figure import FigureJob
    from headway.reproduce.lab import Lab, RunRequest
    from headway.reproduce.measured import Measured
    from headway.rows import MetricName

MOSTLY_KNOWN = 60.0
"""The % of known switches above which Owl should be better than ABC."""
THROUGHPUT: Final = "throughput_mbps"
RTT: Final = "rtt_mean_ms"
END_TO_END = ("cubic", "aurora")
"""The end-to-end schemes that the section compares with."""
UNMASKED, ALIKE = "owl-no-mask", f"owl-{BASE}"
"""Owl without masking, and Owl with masking and the same training budget."""


def fig6(lab: Lab) -> FigureJob:
    """Draws throughput and RTT over the share of switches known, and over the path's length.

    Each is shown without and with masking.
    """
    levels = {_percent(known): scenario for known, scenario in family("owl-nsfnet").items()}
    owl = lab.scheme("owl")
    masked = {level: lab.want("owl", owl, scenario) for level, scenario in levels.items()}
    # It needs a model that differs only in the mask, because Owl itself was trained for longer.
    trained = ablations(lab, {UNMASKED: "no-mask", ALIKE: BASE})
    if UNMASKED not in trained:
        lab.note("a and b are left out")
        trained = {}
    short = {
        label: {level: lab.want(label, spec, scenario) for level, scenario in levels.items()}
        for label, spec in trained.items()
    }
    # Schemes that get nothing from switches do the same at every level.
    flat = lab.each(lab.available_schemes([RULE_ALONE, *END_TO_END]), levels[0.0])
    abc = {_percent(k): lab.want("abc", "abc", abc_path(k)) for k in range(1, len(SWITCHES) + 1)}
    paths, unknown = family("owl-random"), family(path_of("owl-random-unknown"))
    lengths = {
        n: {"owl-100": lab.want("owl-100", owl, paths[n]), "owl-0": lab.want("owl-0", owl, unknown[n])}
        | lab.each(lab.available_schemes([RULE_ALONE, "aurora", "cubic"]), unknown[n])
        for n in paths
    }
    measured = yield [
        *masked.values(),
        *(one for points in short.values() for one in points.values()),
        *flat.values(),
        *abc.values(),
        *(one for points in lengths.values() for one in points.values()),
    ]

    looks = looks_of(["owl", *short, *flat, "abc", "owl-100", "owl-0"])

    def panel(own: Mapping[str, Mapping[float, RunRequest]], of: MetricName, title: str) -> Spec:
        lines = {
            label: {level: measured.mean(one, of) for level, one in points.items()} for label, points in own.items()
        }
        lines |= {label: dict.fromkeys(levels, measured.mean(one, of)) for label, one in flat.items()}
        lines["abc"] = {level: measured.mean(one, of) for level, one in abc.items()}
        return over(lines, looks, "switches known, or marking for ABC (%)", title, zero=False)

    growing = {
        label: {n: measured.mean(points[label], THROUGHPUT) for n, points in lengths.items()}
        for label in next(iter(lengths.values()))
    }
    panels = []
    if short:
        panels += [
            ("(a) without masking: throughput", panel(short, THROUGHPUT, "throughput (Mbit/s)")),
            ("(b) without masking: RTT", panel(short, RTT, "mean RTT (ms)")),
        ]
    panels += [
        ("(c) throughput over the path", over(growing, looks, "informing switches", "throughput (Mbit/s)")),
        ("(d) with masking: throughput", panel({"owl": masked}, THROUGHPUT, "throughput (Mbit/s)")),
        ("(e) with masking: RTT", panel({"owl": masked}, RTT, "mean RTT (ms)")),
    ]

    def claims_of(ours: str) -> list[Claim]:
        own = masked if ours == "owl" else dict.fromkeys(masked, flat[ours])
        rivals = {rival: flat[rival] for rival in END_TO_END if rival in flat}
        above_aurora = _above_aurora(lengths, measured, "owl-0" if ours == "owl" else ours)
        return [_against_end_to_end(own, rivals, measured), *above_aurora]

    end_to_end, *above_aurora = with_rule(claims_of, "owl", RULE_ALONE in flat)
    # The rule gets nothing from switches, so it does not show what knowing them is worth.
    claims = [end_to_end, _against_abc(masked, abc, measured), _over_length(lengths, measured), *above_aurora]
    claims.append(_dip(short.get(UNMASKED, {}), flat["cubic"], measured))
    claims.append(_mask_alone(short, measured))
    if RULE_ALONE in flat:
        levels_known = {f"{level:g}% known": (one, flat[RULE_ALONE]) for level, one in masked.items()}
        claims.append(beats_rule("fig6", levels_known, measured))
    notes = [
        "ABC's routers are at the same number of switches, spread evenly along the path. Without "
        "any, ABC does not run.",
        ABC_RULE,
        "The paper's \u201c100 MBps\u201d are read as Mbit/s.",
        IMITATION,
        TRAIN_FIRST,
    ]
    if short:
        like_it = f"; {ALIKE}, which has masking, for the same time"
        notes.append(
            "a, b: the model without masking was trained for less time than Owl in d and e "
            f"(headway train owl --ablation no-mask){like_it if ALIKE in short else ''}."
        )
    return FigureResult(titled(panels, looks, 2 if short else 3), claims, notes=notes)


def _percent(switches: float) -> float:
    return round(100 * switches / len(SWITCHES), 1)


MORE_AND_LESS: tuple[tuple[MetricName, str, Aim], ...] = (
    (THROUGHPUT, "throughput", Aim(low=0.0, margin=PERCENT)),
    (RTT, "RTT", Aim(high=0.0, margin=PERCENT)),
)
"""The quantity that should be higher, and the one that should be lower."""


def _against_end_to_end(
    masked: Mapping[float, RunRequest], flat: Mapping[str, RunRequest], measured: Measured
) -> Claim:
    return judge(
        "fig6.masked",
        "With masking Owl consistently outperforms the end-to-end schemes, whatever is known (VII-B, Fig. 6d-e)",
        "difference of Owl from Cubic and from Aurora, in %, at each level of knowledge; "
        "thresholds: throughput above 0, mean RTT below 0; within 1% counts as equal",
        {
            f"{said} against {rival}, {level:g}% known": (measured.percent(one, other, of), aim)
            for of, said, aim in MORE_AND_LESS
            for rival, other in flat.items()
            for level, one in masked.items()
        },
        "%",
        learners=("owl",),
    )


def _against_abc(masked: Mapping[float, RunRequest], abc: Mapping[float, RunRequest], measured: Measured) -> Claim:
    return judge(
        "fig6.abc",
        "Above 60% of switches known, or marking, Owl outperforms ABC (VII-B)",
        "difference of Owl from ABC, in %, at each level above 60%; thresholds: throughput above "
        "0, mean RTT below 0; within 1% counts as equal",
        {
            f"{said}, {level:g}% known": (measured.percent(masked[level], one, of), aim)
            for of, said, aim in MORE_AND_LESS
            for level, one in abc.items()
            if level > MOSTLY_KNOWN
        },
        "%",
        learners=("owl",),
    )


def _over_length(lengths: Mapping[float, Mapping[str, RunRequest]], measured: Measured) -> Claim:
    short, long = lengths[min(lengths)], lengths[max(lengths)]
    ours = short["owl-100"], long["owl-100"]
    rivals = [label for label in short if label not in {"owl-100", RULE_ALONE}]
    return judge(
        "fig6.length",
        "Throughput degrades least with the path's length where the whole network is known (Fig. 6c)",
        f"throughput over {max(lengths):g} switches in % of that over {min(lengths):g}: Owl-100 "
        "minus each other scheme; threshold: above 0",
        {rival: measured.kept(ours, (short[rival], long[rival]), THROUGHPUT) for rival in rivals},
        "points",
        more=PERCENT,
        of="throughput kept",
        learners=("owl", "owl-100"),
    )


def _above_aurora(
    lengths: Mapping[float, Mapping[str, RunRequest]], measured: Measured, ours: str
) -> Iterator[Claim]:
    """Claims that an Owl without knowledge is above Aurora; none if Aurora is missing."""
    if "aurora" in next(iter(lengths.values())):
        yield judge(
            "fig6.owl-0",
            "Even Owl-0, which is told nothing, has more throughput than Aurora (Fig. 6c)",
            "difference of Owl-0's throughput from Aurora's, in % of Aurora's, at each length; threshold: above 0",
            {
                f"{n:g} switches": measured.percent(points[ours], points["aurora"], THROUGHPUT)
                for n, points in lengths.items()
            },
            "%",
            more=PERCENT,
            of="throughput",
            learners=("owl", "owl-0"),
        )


def _half(points: Mapping[float, RunRequest]) -> RunRequest:
    return points[min(points, key=lambda level: abs(level - 50))]


def _mask_alone(short: Mapping[str, Mapping[float, RunRequest]], measured: Measured) -> Claim:
    both = {UNMASKED, ALIKE} <= short.keys()
    return judge(
        "fig6.masking",
        "With about half of the switches known, masking gives more throughput and a lower RTT (Fig. 6a-b, d-e)",
        "difference of masking from no masking, in %, with about 50% known and the same training "
        "budget; thresholds: throughput above 0, mean RTT below 0; within 1% counts as equal",
        {
            said: (measured.percent(_half(short[ALIKE]), _half(short[UNMASKED]), of), aim)
            for of, said, aim in MORE_AND_LESS
        }
        if both
        else {},
        "%",
    )


def _dip(unmasked: Mapping[float, RunRequest], cubic: RunRequest, measured: Measured) -> Claim:
    held_against: dict[str, RunRequest] = {}
    if unmasked:
        half = _half(unmasked)
        ends = {"with none": unmasked[min(unmasked)], "with all": unmasked[max(unmasked)]}
        held_against = {"Cubic's": cubic} | ends
    return judge(
        "fig6.unmasked.dip",
        "Without masking Owl is at its worst with about half of the switches known, below Cubic (Fig. 6a)",
        "difference of the throughput with about 50% known from Cubic's, and from that with none "
        "and with all known, in %; threshold: below 0",
        {case: measured.percent(half, one, THROUGHPUT) for case, one in held_against.items()},
        "%",
        less=PERCENT,
        of="throughput",
    )


FIGURES = (
    Figure(
        "fig6",
        "Throughput and RTT over how much of the network is known; throughput over the path's length",
        "Seven switches of NSFNET, 100 Mbit/s, 30 ms of base RTT, one BDP of buffer, 40% load; c: random paths "
        "of 50 to 100 Mbit/s.",
        fig6,
    ),
)
