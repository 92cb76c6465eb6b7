"""`headway` without pictures: each is empty, and has a digest of what was to be drawn.

To draw a chart takes longer than all else in a small bench. Numbers that no chart can have are
refused, as they are where charts are drawn; other faults of a chart are not seen.
"""

import hashlib
import json
import runpy
from typing import Any

import headway.report.svg


def _digest(chart: dict[str, Any]) -> bytes:
    text = json.dumps(chart, default=lambda scalar: scalar.item(), allow_nan=False)
    digest = hashlib.sha256(text.encode()).hexdigest()
    return f'<svg xmlns="http://www.w3.org/2000/svg"><desc>{digest}</desc></svg>'.encode()


headway.report.svg._drawn = _digest

if __name__ == "__main__":
    runpy.run_module("headway", run_name="__main__", alter_sys=True)
