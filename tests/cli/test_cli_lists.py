"""The fields of lists, in a pipe and on a terminal."""

import json

import pytest


def test_lists_have_the_fields_of_the_design(run):
    schemes = json.loads(run("schemes", "--json").stdout)
    assert {"fixed-window", "fixed-rate", "newreno", "cubic", "bbr"} <= {s["name"] for s in schemes}
    assert all(set(s) == {"name", "family", "needs", "worlds", "source"} for s in schemes)
    one = json.loads(run("schemes", "cubic", "--json").stdout)
    assert {"name", "summary", "deviations", "params"} <= set(one)
    scenarios = json.loads(run("scenarios", "--json").stdout)
    assert {"pantheon-default", "rax-1", "lte-verizon"} <= {s["name"] for s in scenarios}
    assert all(set(s) == {"name", "paper", "flows", "traces", "varies", "description", "sweep"} for s in scenarios)


@pytest.mark.parametrize(
    "command", [("traces", "info", "synthetic-verizon.down"), ("traces",), ("scenarios",), ("schemes",)]
)
def test_tables_in_a_pipe_are_not_cut(run, command):
    text = run(*command, COLUMNS="40").stdout
    assert "\u2026" not in text
    assert max(map(len, text.splitlines())) <= 160


@pytest.mark.parametrize("columns", ["0", "abc"])
def test_an_invalid_terminal_width_is_ignored(run, columns):
    """Some batch systems set COLUMNS to such values."""
    assert run("schemes", COLUMNS=columns).stdout == run("schemes").stdout


@pytest.mark.parametrize(
    "command", ["traces", "schemes", "schemes cubic", "scenarios", "traces info synthetic-att.up"]
)
def test_lists_fit_a_terminal(on_a_terminal, command):
    lines = on_a_terminal(*command.split())
    assert len(lines) > 5
    assert max(map(len, lines)) <= 80
    assert not any("\u2026" in line for line in lines)
