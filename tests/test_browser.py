"""The report in a real browser: clicks have their documented effect, without console errors."""

import re
from dataclasses import replace
from importlib import import_module

import pytest

from headway.report import page as draw
from headway.report.labels import Box
from headway.results import read_bench

WIDTHS = (1400, 800, 390)


@pytest.fixture
def open_report(browser):
    """Opens a file in a separate window.

    An error on the console or an attempt to fetch fails the test.
    """
    contexts, complaints = [], []

    def call(path, fragment="", **options):
        context = browser.new_context(**{"viewport": {"width": 1400, "height": 900}} | options)
        contexts.append(context)
        window = context.new_page()
        window.on("console", lambda message: complaints.append(message.text))
        window.on("pageerror", lambda error: complaints.append(str(error)))
        window.on(
            "request", lambda r: complaints.append(r.url) if not r.url.startswith(("file:", "data:")) else None
        )
        window.goto(path.as_uri() + fragment)
        return window

    yield call
    for context in contexts:
        context.close()
    assert complaints == []


@pytest.fixture(scope="session")
def fair_bench(run, tmp_path_factory):
    """A report with two flows, which have a fairness, and with a second scenario."""
    out = tmp_path_factory.mktemp("fair")
    done = run(
        *("bench", "--schemes", "newreno,cubic,bbr", "--scenario", "rax-2,pantheon-default"),
        *("--runs", "6", "--seconds", "10", "--out", out),
    )
    assert done.returncode == 0, done.stderr
    return out / "report.html"


def shown(window, selector):
    return sum(element.is_visible() for element in window.locator(selector).all())


def test_the_page_opens_with_everything_in_place(open_report, fair_bench):
    window = open_report(fair_bench)
    assert window.locator("h1").inner_text() == "Headway bench"
    assert window.locator("h2").all_inner_texts() == [
        "All scenarios",
        "rax-2",
        "pantheon-default",
        "How this was made",
    ]
    assert window.locator("table.sortable tbody tr").count() == 6
    # Every scheme has its point, its ellipse and its name in every scatter.
    for scatter in window.locator("section > figure.wide svg").all():
        assert scatter.locator("path title").count() == 3
        assert set(scatter.locator("text").all_text_contents()) >= {"newreno", "cubic", "bbr"}
    assert window.locator("svg[role=img]:not([aria-label])").count() == 0


def test_navigation_links_scroll_to_their_sections(open_report, fair_bench):
    window = open_report(fair_bench)
    link = window.get_by_role("link", name="pantheon-default").first
    link.click()
    heading = window.locator("#at-pantheon-default")
    assert abs(heading.bounding_box()["y"]) < 200
    window.wait_for_selector("nav a[aria-current]:text-is('pantheon-default')")
    assert "at=at-pantheon-default" in window.url


def test_a_filter_hides_a_scheme_on_the_whole_page_and_is_kept_in_the_address(open_report, fair_bench):
    window = open_report(fair_bench)
    key = re.sub("^pick-", "", window.get_by_role("checkbox", name="cubic").get_attribute("id"))
    before = shown(window, f"main .{key}")
    assert before >= 10
    window.get_by_role("checkbox", name="cubic").uncheck()
    assert shown(window, f"main .{key}") == 0
    assert "cubic" not in window.locator("main section table:visible").first.inner_text()
    assert window.locator("#count").inner_text() == "2 of 3 shown"
    assert window.url.endswith("#schemes=newreno,bbr")

    window.reload()
    assert not window.get_by_role("checkbox", name="cubic").is_checked()
    assert shown(window, f"main .{key}") == 0
    window.get_by_role("button", name="all").click()
    assert shown(window, f"main .{key}") == before
    assert "#" not in window.url


def test_the_address_opens_a_filter_and_a_place(open_report, fair_bench):
    window = open_report(fair_bench, "#schemes=bbr&metric=loss&at=at-pantheon-default")
    assert [window.get_by_role("checkbox", name=name).is_checked() for name in ("newreno", "cubic", "bbr")] == [
        False,
        False,
        True,
    ]
    assert window.get_by_role("radio", name="loss").is_checked()
    assert abs(window.locator("#at-pantheon-default").bounding_box()["y"]) < 200
    assert "bbr" in window.locator(".hidden-schemes").inner_text()


def test_the_summary_shows_the_chosen_metric(open_report, fair_bench):
    window = open_report(fair_bench)
    assert window.locator(".summary table:visible caption").all_inner_texts() == [
        "throughput above p95 delay: more throughput and less delay are better"
    ]
    window.get_by_role("radio", name="p95 delay").check()
    assert window.locator(".summary table:visible caption").all_inner_texts() == ["p95 delay (ms): less is better"]


def test_a_click_on_a_head_sorts(open_report, fair_bench):
    window = open_report(fair_bench)
    table = window.locator("table.sortable").first

    def column(index):
        return [
            float(v)
            for v in table.locator(f"tbody tr td:nth-of-type({index})").evaluate_all("c => c.map(x => x.dataset.v)")
        ]

    head = table.get_by_role("button", name="throughput")
    head.click()
    assert column(1) == sorted(column(1))
    assert table.locator("th[aria-sort=ascending]").count() == 1
    head.press("Enter")
    assert column(1) == sorted(column(1), reverse=True)
    table.get_by_role("button", name="scheme").click()
    assert table.locator("tbody .name").all_inner_texts() == ["bbr", "cubic", "newreno"]


@pytest.mark.parametrize("trace", ["queue_packets", "cwnd_packets", "in_flight_packets", "rtt_ms", "delay_cdf"])
def test_traces_load_after_a_click(open_report, fair_bench, trace):
    window = open_report(fair_bench)
    fold = window.locator(f"details[data-trace={trace}]").first
    assert not fold.locator("svg").is_visible()
    fold.locator("summary").click()
    assert fold.locator("svg").is_visible()
    # Every scheme has a line with its markers, and nothing is drawn outside.
    lines = fold.locator("svg g[class]")
    assert {element.get_attribute("class") for element in lines.all()} == {"k0", "k1", "k2"}
    assert fold.locator("svg path").first.bounding_box()["width"] > 100


def test_fairness_is_shown_where_there_are_several_flows(open_report, fair_bench):
    window = open_report(fair_bench)
    assert window.get_by_role("heading", name="Fairness over time").count() == 1
    assert window.locator('svg[aria-label*="Jain\'s index over time"]').count() == 3
    assert window.locator("table.flows tbody tr:not(.group)").count() == 6


def test_the_page_follows_the_dark_and_light_setting(open_report, fair_bench):
    def paper(window):
        return window.evaluate("getComputedStyle(document.body).backgroundColor")

    def black(window):
        """The colour of the axis' titles."""
        return window.evaluate("getComputedStyle(document.querySelector('svg text[fill=\"#1b1f24\"]')).fill")

    light, dark = "rgb(255, 255, 255)", "rgb(20, 24, 28)"
    window = open_report(fair_bench, color_scheme="dark")
    assert paper(window) == dark
    assert black(window) == "rgb(232, 235, 238)"
    window.get_by_role("button", name="light theme").click()
    assert paper(window) == light
    assert black(window) == "rgb(27, 31, 36)"
    window.reload()
    assert paper(window) == light
    assert paper(open_report(fair_bench)) == light


@pytest.mark.parametrize("width", WIDTHS)
def test_the_page_never_scrolls_sideways(open_report, fair_bench, width):
    window = open_report(fair_bench, viewport={"width": width, "height": 900})
    assert window.evaluate("document.documentElement.scrollWidth") <= width


def test_the_page_prints_on_white_without_controls(open_report, fair_bench):
    window = open_report(fair_bench, "#schemes=newreno,bbr", color_scheme="dark")
    pdf = window.pdf(prefer_css_page_size=True)
    # The print has one page each for the summary, the scenarios and the methods, and no page for
    # each chart.
    pages = len(re.findall(rb"/Type\s*/Page\b", pdf))
    assert 4 <= pages <= 12
    window.emulate_media(media="print")
    assert window.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert not window.locator("aside").is_visible()
    assert window.locator(".hidden-schemes").inner_text() == "Schemes shown: newreno, bbr."
    assert window.locator("section .card").first.evaluate("e => getComputedStyle(e).breakInside") == "avoid"


def test_without_javascript_the_results_are_shown_and_the_filter_works(open_report, fair_bench):
    window = open_report(fair_bench, java_script_enabled=False)
    assert shown(window, "table.sortable") == 2
    assert not window.get_by_role("button", name="dark theme").is_visible()
    window.get_by_role("checkbox", name="cubic").uncheck()
    assert shown(window, "main .k1") == 0
    window.locator("details.trace summary").first.click()
    assert window.locator("details.trace svg").first.is_visible()


def test_the_keyboard_reaches_everything(open_report, fair_bench):
    window = open_report(fair_bench)
    window.keyboard.press("Tab")
    assert window.evaluate("document.activeElement.className") == "skip"
    window.keyboard.press("Tab")
    assert window.evaluate("document.activeElement.textContent") == "All scenarios"
    window.get_by_role("checkbox", name="cubic").focus()
    window.keyboard.press("Space")
    assert not window.get_by_role("checkbox", name="cubic").is_checked()


SWEEP = """
schema = 1
name = "buffers"
description = "growing buffers"
seconds = 4

[bottleneck]
rate = "20Mbps"
delay = "10ms"
queue = "10kB"

[varies]
start = "0ms..30ms"

[sweep]
key = "bottleneck.queue"
values = ["10kB", "50kB", "200kB"]
"""


@pytest.fixture(scope="session")
def sweep_bench(run, tmp_path_factory):
    out = tmp_path_factory.mktemp("sweep")
    (out / "buffers.toml").write_text(SWEEP)
    scenario = ("--scenario", out / "buffers.toml", "--runs", "3")
    done = run("bench", "--schemes", "newreno,cubic", *scenario, "--out", out)
    assert done.returncode == 0, done.stderr
    return out


def test_a_sweep_is_one_section_with_lines_over_the_value(open_report, sweep_bench):
    window = open_report(sweep_bench / "report.html")
    assert window.locator("h2").all_inner_texts() == ["All scenarios", "buffers", "How this was made"]
    chart = window.locator("svg[aria-label^='throughput over bottleneck.queue']")
    assert set(chart.locator("text").all_text_contents()) >= {"10", "50", "200", "bottleneck.queue (kB)"}
    # Each scheme has a band, a line and three markers.
    assert [chart.locator(f".{key} path").count() for key in ("k0", "k1")] == [5, 5]
    # A member unfolds when the summary's link is followed.
    window.locator(".summary table:visible a").nth(1).click()
    heading = window.locator("#at-buffers_3a_queue_3d_50kB")
    assert heading.is_visible()
    assert abs(heading.bounding_box()["y"]) < 200


def test_with_too_many_pairs_sweeps_have_no_charts_over_time(sweep_bench, monkeypatch):
    bench = read_bench(sweep_bench)
    assert draw(bench).count("rate over time against the capacity") == 6
    monkeypatch.setattr(import_module("headway.report.page"), "MOST_PAIRS", 5)
    html = draw(bench)
    assert html.count("rate over time against the capacity") == 4
    assert html.count("This page has no charts over time") == 1


def test_many_flows_are_not_listed_one_by_one(run, tmp_path):
    (tmp_path / "many.toml").write_text(
        SWEEP.partition("[sweep]")[0].replace("buffers", "many") + "[[flow]]\ncount = 17\n"
    )
    done = run(
        "bench", "--schemes", "cubic", "--scenario", tmp_path / "many.toml", "--runs", "2", "--out", tmp_path
    )
    assert done.returncode == 0, done.stderr
    html = (tmp_path / "report.html").read_text()
    assert "17 flows are too many" in html
    assert '<table class="flows">' not in html
    assert "Jain's index over time" in html.replace("&#x27;", "'")


MOST_ELEMENTS = 30_000


@pytest.fixture(scope="session")
def twenty_schemes(fair_bench, tmp_path_factory):
    """The page of a real bench.

    Its schemes are repeated under other names, and its flows are doubled twice.
    """
    bench = read_bench(fair_bench.parent)
    facts = bench.facts | {"scenarios": []}
    runs, series = [], []
    source = next(s for s in bench.facts["scenarios"] if s["name"] == "rax-2")
    for place in range(3):
        name = f"place-{place}"
        facts["scenarios"].append(source | {"name": name})
        for number in range(20):
            scheme = ("newreno", "cubic", "bbr")[number % 3]
            own = {"scenario": name, "scheme": f"{scheme}:variant={number}"}
            runs += [dict(r) | own for r in bench.runs if (r["scheme"], r["scenario"]) == (scheme, "rax-2")]
            for s in bench.series:
                if (s["scheme"], s["scenario"]) != (scheme, "rax-2"):
                    continue
                # The page has as many bins as a run of 60 s, all different, and eight flows.
                longer = {k: v * 6 for k, v in s.items() if isinstance(v, list)} | {
                    "time_s": [k * 0.5 for k in range(120)]
                }
                copies = [-1] if s["flow"] < 0 else [s["flow"] * 4 + k for k in range(4)]
                series += [s | own | longer | {"flow": flow} for flow in copies]
    assert len(series) == 3 * 20 * 9
    path = tmp_path_factory.mktemp("twenty") / "report.html"
    path.write_text(draw(replace(bench, facts=facts, runs=runs, series=series)))
    return path


def test_twenty_schemes_on_three_scenarios_of_several_flows_stay_small(open_report, twenty_schemes):
    path = twenty_schemes
    assert path.stat().st_size < 3_000_000
    window = open_report(path, viewport={"width": 1300, "height": 900})
    # The number of elements determines the loading time: about one second on two busy cores.
    assert window.evaluate("document.getElementsByTagName('*').length") < MOST_ELEMENTS
    assert window.locator("table.sortable tbody tr").count() == 60
    # Every column of the metrics is visible, and no name in a chart overlaps another.
    widths = "t => [t.parentElement.scrollWidth, t.parentElement.clientWidth]"
    for table in window.locator("table.sortable").all():
        needed, given = table.evaluate(widths)
        assert needed <= given
    boxes = "g => g.map(e => e.getBoundingClientRect()).map(r => [r.left, r.top, r.right, r.bottom])"
    for chart in window.locator("svg[aria-label^='Throughput against']").all():
        names = [Box(*b) for b in chart.locator("text", has_text=":variant=").evaluate_all(boxes)]
        assert len(names) > 3
        assert not any(a.overlap(b) for k, a in enumerate(names) for b in names[:k])
