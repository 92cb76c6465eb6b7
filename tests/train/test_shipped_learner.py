"""The shipped learner.

Its training takes longer than other tests, and its inputs rarely change.
"""

import pytest

from headway.models.learner import load_learner
from headway.train import online

pytestmark = pytest.mark.train


@pytest.mark.usefixtures("recorded_traces")
def test_the_shipped_learner_equals_the_output_of_its_command(tmp_path, monkeypatch):
    # The figures of its card are over five. They are not part of the learned state.
    monkeypatch.setattr(online, "EVALUATED", 1)
    found = online.train(tmp_path / "rax-v3", 1, lambda _: None)
    assert found == load_learner("rax-v3").id
