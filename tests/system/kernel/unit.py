"""The systemd unit of headwayd."""

import re
from pathlib import Path

FILE = Path(__file__).parents[3] / "crates" / "headwayd" / "systemd" / "headwayd.service"


def setting(name: str) -> str:
    """The value of the only line that sets this, such as `50ms` of RestartSec."""
    (value,) = re.findall(rf"^{name}=(.*)$", FILE.read_text(), re.MULTILINE)
    return str(value)
