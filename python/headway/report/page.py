"""report.html: one file that fetches nothing. Its essential parts work without a script."""

import base64
import hashlib
from collections.abc import Collection, Mapping, Sequence
from html import escape
from importlib import resources

from headway.fitness import verdict
from headway.report import tables
from headway.report.families import Family, families
from headway.report.sections import Content, family_section, overview, scenario_section
from headway.report.style import DARK, Style, styles
from headway.results import Bench, BenchFacts
from headway.summary import Tell, silent

MOST_POINTS = 150_000
"""The most points of all lines of a page, about 8 bytes each, so that a page stays below 3 MB."""
LINES_A_SERIES = 7
"""How often a series is drawn: its rate, delay, share, and the traces on demand."""
MOST_PAIRS = 120
"""The most pairs of scheme and scenario whose series are drawn; scenarios outside sweeps come
first."""
NAMED = 6
"""More schemes or scenarios than this are counted in the title, not named."""
BINS = 40, 280
"""The minimum and maximum number of a line's points. More points would not be visible."""


def page(bench: Bench, tell: Tell = silent) -> str:
    """Returns the report of a bench as HTML.

    The same bench gives the same bytes. `tell` takes the finished share.
    """
    facts = bench.facts
    style = styles([row["scheme"] for row in bench.rows])
    swept = families(bench.facts["scenarios"])
    members = {name for family in swept for name in family.values}
    contents = _contents(bench, style, members)
    alone = [c for c in contents if c.scenario["name"] not in members]
    names = [c.scenario["name"] for c in contents]
    shown = [f.name for f in swept] + [c.scenario["name"] for c in alone]
    title = f"{_list([look.name for look in style.values()], 'schemes')} on {_list(shown, 'scenarios')}"
    script = _resource("page.js")
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        _policy(script),
        '<link rel="icon" href="data:,">',
        f"<title>Headway bench: {escape(title)}</title>",
        f"<style>{_css(style)}</style></head><body>",
        '<a class="skip" href="#main">to the results</a>',
        _side(style, swept, alone, summary=len(contents) > 1),
        '<main id="main" tabindex="-1">',
        f"<header><h1>Headway bench</h1><p>{escape(title)}</p><pre>{escape(facts['command'])}</pre>",
        _interrupted(facts),
        f'<p class="warn">{escape(unfit)}.</p>' if (unfit := verdict(bench.rows)) else "",
        f'<p class="note">{escape(bench.interval_warning)}</p>' if bench.interval_warning else "",
        *(
            f'<p class="note">{escape(warning)}</p>'
            for warning in [*bench.refused, *bench.guarded, *bench.collapsed]
        ),
        *(f'<p class="warn">{escape(note)}.</p>' for note in facts["notes"]),
        '<p class="warn hidden-schemes">Schemes shown: <span id="shown"></span>.</p></header>',
    ]
    if len(contents) > 1:
        parts += [
            '<section><h2 id="summary" tabindex="-1">All scenarios</h2>',
            overview(alone),
            tables.over_scenarios(bench.rows, names, style, lambda c: bench.leaders(c.metric, more=c.more)),
            "</section>",
        ]
    done = 0
    for family in swept:
        own = [c for name in family.values for c in contents if c.scenario["name"] == name]
        if own:
            parts.append(family_section(family, own))
            done += len(own)
            tell(done / len(contents))
    for one in alone:
        parts.append(scenario_section(one))
        done += 1
        tell(done / len(contents))
    parts += [_how(facts, style), "</main>", f"<script>{script}</script>", "</body></html>\n"]
    return "\n".join(part for part in parts if part)


def _contents(bench: Bench, style: Mapping[str, Style], members: Collection[str]) -> list[Content]:
    """Returns the content of each scenario that has results; `members` are those of sweeps."""
    points = min(BINS[1], max(BINS[0], MOST_POINTS // (LINES_A_SERIES * max(len(bench.series), 1))))
    found = {}
    left = MOST_PAIRS
    for scenario in sorted(bench.facts["scenarios"], key=lambda s: s["name"] in members):
        name = scenario["name"]
        rows = [r for r in bench.rows if r["scenario"] == name]
        if not rows:
            continue
        room = len(rows) <= left
        left -= len(rows) if room else 0
        series = [s for s in bench.series if s["scenario"] == name] if room else []
        own = {scheme: region for (scheme, where), region in bench.regions.items() if where == name}
        found[name] = Content(scenario, rows, series, own, style, points, room)
    return [found[s["name"]] for s in bench.facts["scenarios"] if s["name"] in found]


def _resource(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _policy(script: str) -> str:
    """Returns a content security policy: nothing is fetched, and only our script runs."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    rules = f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{digest}'"
    return f'<meta http-equiv="Content-Security-Policy" content="{rules}">'


def _css(style: Mapping[str, Style]) -> str:
    # A chart's colours are in its marks; a dark screen exchanges them.
    swap = "".join(
        f'svg [{what}="{light}"]{{{what}:light-dark({light},{dark})}}'
        for light, dark in DARK.items()
        for what in ("fill", "stroke")
    )
    hide = "".join(
        f"body:has(#pick-{look.key}:not(:checked)) .{look.key}{{display:none}}" for look in style.values()
    )
    return f"{_resource('page.css')}{swap}{hide}"


def _side(style: Mapping[str, Style], swept: Sequence[Family], alone: Sequence[Content], *, summary: bool) -> str:
    """Returns the side column: links to sections, and the choice of schemes."""
    names = [f.name for f in swept] + [c.scenario["name"] for c in alone]
    places = [(tables.anchor(name), name) for name in names] + [("how", "How this was made")]
    if summary:
        places.insert(0, ("summary", "All scenarios"))
    links = "".join(f'<li><a href="#{escape(at)}">{escape(name)}</a></li>' for at, name in places)
    picks = "".join(
        f'<label><input type="checkbox" id="pick-{look.key}" value="{escape(scheme)}" checked> '
        f"{tables.named(look)}</label>"
        for scheme, look in style.items()
    )
    return (
        f'<aside><nav aria-label="Sections"><ul>{links}</ul></nav>'
        f'<fieldset id="schemes"><legend>Schemes</legend><div class="picks">{picks}</div>'
        '<p class="buttons"><button type="button" id="all">all</button> '
        '<button type="button" id="none">none</button> <span id="count" aria-live="polite"></span></p></fieldset>'
        '<p class="buttons"><button type="button" id="theme">theme</button></p></aside>'
    )


def _interrupted(facts: BenchFacts) -> str:
    done, total = facts["finished_runs"], facts["total_runs"]
    return f'<p class="warn">Interrupted: {int(done)} of {int(total)} runs are in.</p>' if done < total else ""


def _how(facts: BenchFacts, style: Mapping[str, Style]) -> str:
    seconds = "each scenario's own" if facts["seconds"] is None else f"{facts['seconds']:g} s"
    about = {
        "command": facts["command"],
        "seed": f"{facts['seed']} for the first run; the seeds of the other runs, up to run {facts['runs']}, "
        "derive from it and the run's number. Each row of results.parquet has its seed: --seed THAT --runs 1 "
        "repeats one run",
        "length": f"{seconds}; the metrics leave out the first {facts['warmup']:g} s",
        "intervals": "95%: Student's below 30 runs, a BCa bootstrap's with 10,000 resamples from 30 on; where runs "
        "begin at offsets of one trace, neighbours that overlap count as one run, and it is always Student's",
        "ellipses": "95% confidence region of the two means (Hotelling's T\u00b2), with the covariance of the same "
        "blocks",
        "world": facts["world"],
        "headway": f"{facts['headway']}, code {facts['code_version']}, results schema {facts['schema']}",
    }
    about |= {look.name: scheme for scheme, look in style.items() if look.name != scheme}
    about |= {
        scheme: f"class {own['class']} of {own['file']}, SHA-256 {own['sha256']}"
        for scheme, own in facts.get("controllers", {}).items()
    }
    again = (
        "The same command and version give the same numbers, bit for bit."
        if facts["world"] == "sim"
        else "In real time no two runs are equal: the same command gives the same networks, not the same packets."
    )
    items = "".join(f"<dt>{escape(k)}</dt><dd>{escape(str(v))}</dd>" for k, v in about.items())
    return (
        f'<section><h2 id="how" tabindex="-1">How this was made</h2><dl>{items}</dl>'
        f'<p class="note">{again} '
        "Every run is in <code>results.parquet</code>, the series in <code>series.parquet</code>: "
        "<code>headway report DIR</code> writes this page from the two. Its rows are in <code>bench.json</code>."
        "</p></section>"
    )


def _list(names: Sequence[str], what: str) -> str:
    if len(names) > NAMED:
        return f"{len(names)} {what}"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
