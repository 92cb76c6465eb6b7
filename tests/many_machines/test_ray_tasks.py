"""Tasks on a cluster: the number of sent tasks, and their results.

It also tests the messages if a machine or Ray fails.
"""

import pytest

from fake_ray import RayError, RaySystemError
from headway._native import RunError
from headway.runs import many_machines
from headway.runs.many_machines import RETRIES, connected


def times_two(number):
    return 2 * number


def fails(number):
    raise RunError(f"run {number} failed")


def breaks(number):
    raise ZeroDivisionError(f"in\ntask {number}")


def all_of(running):
    found = {}
    while not running.is_done:
        found.update(running.wait())
    return found


def test_lost_workers_are_replaced_and_errors_are_not_tried_again(ray):
    with connected("auto") as machines, machines.running(times_two, [1]) as running:
        assert all_of(running) == {1: 2}
    assert ray.sent == [{"num_cpus": 1, "max_retries": RETRIES, "retry_exceptions": False}]
    assert RETRIES >= 3


@pytest.mark.parametrize(("jobs", "most"), [(None, 6), (2, 2)])
def test_few_tasks_are_under_way_at_a_time(ray, jobs, most):
    with connected("auto") as machines, machines.running(times_two, range(50), jobs) as running:
        assert all_of(running) == {number: 2 * number for number in range(50)}
    assert ray.most == most


@pytest.mark.parametrize(
    ("work", "why"), [(fails, "run 7 failed"), (breaks, "ZeroDivisionError: in task 7")], ids=["known", "unknown"]
)
def test_an_error_of_a_task_is_its_result(ray, work, why):
    with connected("auto") as machines, machines.running(work, [7]) as running:
        (error,) = all_of(running).values()
    assert isinstance(error, RunError)
    assert str(error) == why
    assert len(ray.sent) == 1


def test_a_task_that_fails_for_another_reason_is_not_called_lost(ray):
    def no_disk(_):
        raise RayError("no disk\nand more")

    ray.around = no_disk
    with connected("auto") as machines, machines.running(times_two, [1]) as running:
        (error,) = all_of(running).values()
    assert str(error) == "Ray has given it up: no disk"


def test_results_are_given_before_an_error_that_came_with_them(ray):
    def lost(carry_out):
        if not ray.answers:
            raise RaySystemError("the head is gone")
        return carry_out()

    ray.around, ray.at_once = lost, 3
    with connected("auto") as machines, machines.running(times_two, range(3)) as running:
        assert running.wait() == [(0, 0), (1, 2)]
        assert not running.is_done
        with pytest.raises(RunError, match=r"^--ray auto: Ray fails: the head is gone$"):
            running.wait()
        assert running.is_done


def test_a_failing_cluster_gives_a_one_line_error(ray):
    with connected("auto") as machines, machines.running(times_two, range(3)) as running:
        ray.fails = RaySystemError("the head is gone\nand more")
        with pytest.raises(RunError, match=r"^--ray auto: Ray fails: the head is gone$"):
            running.wait()


def test_messages_of_ray_about_workers_are_one_line_on_standard_error(capsys):
    many_machines._tell(
        {
            "lines": ["A worker died or was killed.\nTo troubleshoot the problem, check the logs: 1.", "x"],
            "pid": "raylet",
            "is_err": False,
        },
        ignore_prefix=False,
    )
    found = capsys.readouterr()
    assert (found.out, found.err) == ("", "headway: Ray: A worker died or was killed\n")
