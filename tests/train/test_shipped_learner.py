"""The learner that is shipped.

Its training takes longer than other tests, and what it covers seldom changes.
"""

import pytest

from headway.models.learner import load_learner
from headway.train import online

pytestmark = pytest.mark.train


@pytest.mark.usefixtures("recorded_traces")
def test_the_shipped_learner_equals_the_output_of_its_command(tmp_path, monkeypatch):
    # Its card's figures are of five; they are no part of what is learned.
    monkeypatch.setattr(online, "EVALUATED", 1)
    found = online.train(tmp_path / "rax-v3", 1, lambda _: None)
    assert found == load_learner("rax-v3").id
