import base64
import hashlib
import os
import re
import subprocess
import sys
from html import escape
from pathlib import Path

import pytest

from headway.report import draw_picture, page
from headway.report.labels import Box, place
from headway.report.numbers import number
from headway.report.scatter import throughput_against_delay
from headway.report.style import styles
from headway.report.svg import _shorter
from headway.report.tables import anchor
from headway.results import read_bench


def test_the_report_is_one_small_file_that_fetches_nothing(small_bench):
    html = (small_bench / "report.html").read_text()
    assert len(html) < 3_000_000
    links = set(re.findall(r"(?:src|href|url)\s*[=(]\s*[\"']?(?!#|data:)([^\"')\s>]+)", html))
    assert links == set()
    # The only script is ours, and the policy permits no other one and no fetching.
    (script,) = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{digest}'" in html


def test_the_report_says_how_it_was_made(small_bench):
    html = (small_bench / "report.html").read_text()
    bench = read_bench(small_bench)
    assert "headway bench --schemes newreno,cubic" in html
    for scenario in bench.facts["scenarios"]:
        assert scenario["hash"] in html
        assert escape(scenario["text"].strip()) in html
    assert bench.facts["headway"] in html


EVERY_CHART = """
schema = 1
name = "pair"
description = "two flows and growing buffers"
seconds = 4

[bottleneck]
rate = "20Mbps"
delay = "10ms"
queue = "10kB"

[[flow]]
count = 2

[varies]
start = "0ms..30ms"

[sweep]
key = "bottleneck.queue"
values = ["10kB", "50kB"]
"""
KINDS = (
    "throughput over bottleneck.queue",
    "each flow's share over time",
    "Jain's index over time",
    "rate over time against the capacity of the bottleneck",
    "one-way delay over time",
    "of each scheme over time in its first run",
    "Distribution of one-way delay",
)


def test_every_kind_of_chart_of_a_report_is_drawn(drawing_run, tmp_path):
    """Tests with undrawn_run would not notice a chart that cannot be drawn."""
    (tmp_path / "pair.toml").write_text(EVERY_CHART)
    words = ("--schemes", "newreno,cubic", "--scenario", tmp_path / "pair.toml", "--runs", "2")
    done = drawing_run("bench", *words, "--against", "newreno", "--out", tmp_path / "out")
    assert (done.returncode, "warning" in done.stderr) == (0, False), done.stderr
    html = (tmp_path / "out" / "report.html").read_text()
    labels = re.findall(r'<svg[^>]*aria-label="([^"]*)"', html)
    assert labels
    assert [kind for kind in KINDS if not any(kind in label for label in labels)] == [], labels


def test_undrawn_charts_refuse_numbers_that_no_chart_can_show():
    program = "import undrawn; undrawn._digest({'y': [1.0, float('nan')]})"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parent,
        env=environment,
    )
    assert "Out of range float values are not JSON compliant" in done.stderr


def test_no_two_names_have_the_same_id():
    names = ["a:b=1", "a-b-1", "a_b=1", "a:b_1", "a_3a_b"]
    assert len({anchor(name) for name in names}) == len(names)
    assert not any(c in anchor(name) for name in ['a"b', "a b", "a<b"] for c in '" <')


def test_names_are_text_not_markup(small_bench):
    bench = read_bench(small_bench)
    bench.facts["scenarios"][0]["description"] = "<b>bold</b> & more"
    html = page(bench)
    assert "&lt;b&gt;bold&lt;/b&gt; &amp; more" in html


@pytest.mark.parametrize(("ending", "begins"), [("svg", b"<svg"), ("png", b"\x89PNG")])
def test_a_picture_of_a_bench_is_written(small_bench, tmp_path, ending, begins):
    path = tmp_path / f"lte.{ending}"
    draw_picture(small_bench, path, "Two links")
    assert path.read_bytes().startswith(begins)


def test_better_is_up_and_to_the_right(small_bench, tmp_path):
    """In the picture a lower delay is further right, and a higher rate further up."""
    path = tmp_path / "picture.svg"
    draw_picture(small_bench, path, "")
    rows = [r for r in read_bench(small_bench).rows if r["scenario"] == "pantheon-default"]
    svg = path.read_text()
    at = {}
    for row in rows:
        text = (
            f"{row['scheme']}: {row['throughput_mbps']['mean']:.2f} Mbit/s, "
            f"p95 delay {row['delay_p95_ms']['mean']:.0f} ms"
        )
        found = re.search(r'<path aria-label="' + re.escape(text) + r'"[^>]*translate\(([\d.]+),([\d.]+)\)', svg)
        at[row["scheme"]] = (float(found[1]), float(found[2]))
    by_delay = sorted(rows, key=lambda r: r["delay_p95_ms"]["mean"])
    by_rate = sorted(rows, key=lambda r: r["throughput_mbps"]["mean"])
    assert at[by_delay[0]["scheme"]][0] > at[by_delay[-1]["scheme"]][0]
    assert at[by_rate[-1]["scheme"]][1] < at[by_rate[0]["scheme"]][1]


def row(scheme, throughput, delay):
    """A row of a bench as charts read it. Each metric is (mean, low, high)."""
    metrics = {"throughput_mbps": throughput, "delay_p95_ms": delay}
    made = {name: {"mean": mean, "ci95": [low, high]} for name, (mean, low, high) in metrics.items()}
    return {"scheme": scheme, "model": None, "utilisation": {"mean": None, "ci95": None}, **made}


def scatter(rows, **options):
    return throughput_against_delay(rows, styles([r["scheme"] for r in rows]), {}, **options)


def whisker(chart, key):
    (layer,) = [layer for layer in chart["layer"] if layer.get("name", "").endswith("-across")][:1]
    (value,) = layer["data"]["values"]
    return value[f"{key}_low"], value[f"{key}_high"]


def test_an_interval_beyond_an_axis_ends_at_the_axis():
    """A logarithmic axis has no place for an end below 0."""
    rows = [row("cubic", (5, 2, 8), (2600, -260, 5500)), row("owl", (5, 4, 6), (50, 45, 60))]
    chart = scatter(rows)
    x = chart["layer"][-2]["encoding"]["x"]["scale"]
    assert x["type"] == "log"
    low, high = whisker(chart, "delay")
    assert (low, high) == (x["domain"][0], pytest.approx(min(5500, x["domain"][1])))
    assert low > 0


@pytest.mark.parametrize(
    ("rates", "begins_at_0", "says"),
    [
        # The schemes are 3% apart. With an axis from 0 no one would see which is faster.
        ([11.8, 11.4], False, "throughput (Mbit/s), axis not from 0"),
        ([11.8, 3.0], True, "throughput (Mbit/s)"),
    ],
)
def test_the_axis_of_throughput_separates_schemes_and_is_marked_if_it_does_not_begin_at_0(rates, begins_at_0, says):
    rows = [row(name, (r, r, r), (50, 50, 50)) for name, r in zip(("cubic", "owl"), rates, strict=True)]
    y = scatter(rows, from_zero=False)["layer"][-2]["encoding"]["y"]
    low, high = y["scale"]["domain"]
    assert (low == 0, y["axis"]["title"]) == (begins_at_0, says)
    assert low < min(rates)
    assert max(rates) < high
    assert scatter(rows)["layer"][-2]["encoding"]["y"]["scale"]["domain"][0] == 0


def matrices(html):
    """The tables over scenarios, by their selection, in their order, without tags."""
    found = re.findall(r'<div class="of-(\w+)">(.*?)</table>', html, re.DOTALL)
    return {key: re.sub(r"<[^>]*>", " ", table) for key, table in found}


def test_the_page_opens_with_throughput_and_delay_together(small_bench):
    """Throughput alone does not show which scheme is better."""
    bench = read_bench(small_bench)
    html = page(bench)
    start = html[html.index('id="summary"') : html.index("</section>")]
    assert start.count("better: up and to the right") == 2
    tables = matrices(start)
    assert list(tables)[:3] == ["both", "throughput_mbps", "delay_p95_ms"]
    assert re.search(r'value="both" id="metric-both" checked>', start)
    for one in bench.rows:
        rate, delay = one["throughput_mbps"]["mean"], one["delay_p95_ms"]["mean"]
        assert re.search(rf"{number(rate)} +Mbit/s +{number(delay)} +ms", tables["both"])


def test_if_schemes_are_compared_the_page_opens_with_the_verdicts(small_bench):
    bench = read_bench(small_bench)
    bench.facts["against"] = "newreno"
    html = page(bench)
    tables = matrices(html)
    assert next(iter(tables)) == "against"
    assert "newreno" not in tables["against"].split("scheme", 1)[1]
    compared = [one["against"] for one in bench.rows if "against" in one]
    assert len(compared) == 2
    zones = [one[metric]["zone"] for one in compared for metric in ("throughput_mbps", "delay_p95_ms")]
    body = tables["against"].split("cubic", 1)[1]
    assert re.findall("(?:not )?better|(?:not )?worse|equal|unclear", body) == zones
    # In a scenario's own section the verdicts come before the means.
    section = html[html.index('id="at-pantheon-default"') :]
    assert section.index("Against newreno, run by run") < section.index(">Metrics<")


def test_power_is_defined_wherever_it_is_shown(small_bench):
    html = page(read_bench(small_bench))
    meaning = "power is throughput divided by mean one-way delay"
    assert html.count(f"; {meaning}.</p>") == html.count(">Metrics<") == 2
    assert meaning in matrices(html)["power"]


def test_labels_cover_neither_points_nor_each_other():
    points = [Box(x - 5, y - 5, x + 5, y + 5) for x, y in [(100, 100), (112, 104), (100, 118), (390, 100)]]
    texts = ["cubic", "newreno", "bbr", "at-the-edge"]
    places = place(texts, [[p] for p in points], [], (400, 300))
    boxes = []
    for text, point, (align, dx, dy) in zip(texts, points, places, strict=True):
        x, y, width = point.left + 5 + dx, point.top + 5 + dy, 7 * len(text)
        left = x - {"left": 0, "center": width / 2, "right": width}[align]
        boxes.append(Box(left, y - 6, left + width, y + 6))
    every = boxes + points
    assert sum(a.overlap(b) for i, a in enumerate(every) for b in every[:i] if a in boxes or b in boxes) == 0
    assert all(b.right <= 400 for b in boxes)


def test_a_label_without_room_is_left_out():
    """Thirty points in one place: some have labels, and no label covers another."""
    points = [[Box(195, 145, 205, 155)]] * 30
    places = place(["a-long-name"] * 30, points, [], (400, 300))
    assert 5 < sum(p is not None for p in places) < 30
    assert place(["a-long-name"] * 30, points, [], (400, 300)) == places
    boxes = []
    for align, dx, dy in filter(None, places):
        left = 200 + dx - {"left": 0, "center": 38.5, "right": 77}[align]
        boxes.append(Box(left, 150 + dy - 7.5, left + 77, 150 + dy + 7.5))
    assert not any(a.overlap(b) for i, a in enumerate(boxes) for b in [*boxes[:i], points[0][0]])


@pytest.mark.parametrize(
    ("path", "short"),
    [
        ("M0,5.8L3.3,5.8L3.3,5.8L6.6,5.8L6.6,7L10,9", "M0,5.8H6.6V7L10,9"),
        # A return to the same point is removed from the line. A gap and a closed area stay.
        ("M0,1L4,1L2,1L2,3Z", "M0,1H4H2V3Z"),
        ("M0,0L1,0M3,0L4,0", "M0,0H1M3,0H4"),
        ("M1,0A1,1,0,1,1,-1,0Z", "M1,0A1,1,0,1,1,-1,0Z"),
    ],
)
def test_paths_are_shortened_and_stay_the_same_line(path, short):
    assert _shorter(path) == short


def test_a_scheme_of_several_models_has_a_short_name_on_the_page(drawing_run, tmp_path):
    again = Path("python/headway/models/trainings/owl-v1-seed-2").resolve()
    several = f"owl:model=v1:model={again}"
    wanted = ("--schemes", f"{several},cubic", "--scenario", "rax-1", "--runs", "2", "--seconds", "2")
    done = drawing_run("bench", *wanted, "--against", several, "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    html = (tmp_path / "report.html").read_text()
    # The spec is twice in the command, which is shown twice. One line explains the name, and the
    # filter's box has it as its value.
    assert html.count(several) == 6
    assert f"<dt>owl (2 models)</dt><dd>{several}</dd>" in html
    assert "<title>Headway bench: owl (2 models) and cubic on rax-1</title>" in html
    assert "Against owl (2 models), run by run" in html
