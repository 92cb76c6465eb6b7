"""The fixtures of `cargo test` equal the results of the current PyTorch."""

import json

import numpy as np
import pytest

pytestmark = pytest.mark.train


def test_the_fixtures_equal_the_outputs_of_pytorch():
    import nn_fixtures

    kept = json.loads(nn_fixtures.FIXTURES.read_text())
    assert_close(nn_fixtures.fixtures(), kept, "fixtures")


def assert_close(now, kept, where):
    if isinstance(kept, dict):
        assert list(now) == list(kept), where
        for name in kept:
            assert_close(now[name], kept[name], f"{where}, {name}")
    elif isinstance(kept, list) and kept and isinstance(kept[0], float):
        np.testing.assert_allclose(now, kept, rtol=1e-5, atol=1e-6, err_msg=where)
    elif isinstance(kept, list) and kept and isinstance(kept[0], (dict, list)):
        assert len(now) == len(kept), where
        for number, (one, other) in enumerate(zip(now, kept, strict=True)):
            assert_close(one, other, f"{where}, {number}")
    elif isinstance(kept, float):
        assert now == pytest.approx(kept, rel=1e-5), where
    else:
        assert now == kept, where


def test_raxs_fixtures_equal_the_outputs_of_pytorch():
    import pal_fixtures

    kept = json.loads(pal_fixtures.FIXTURES.read_text())
    assert_close(pal_fixtures.fixtures(), kept, "fixtures")
