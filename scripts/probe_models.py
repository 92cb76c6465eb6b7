"""Models that show their observations.

Their decision adds a feature times a factor to the window. `headwayd run --shadow FILE` writes each
decision, so the file shows the policy's observations. Meanwhile Cubic controls the flow.
"""

from pathlib import Path

import numpy as np

from headway.models import write

FACTORS = {"network_known": 1000.0, "pna": 1000.0, "pnc_packets": 10.0}
"""Packets that are added for the value 1 of each feature. The kernel's window has whole packets."""


def probe(folder: Path, feature: str) -> str:
    """Writes the model for one of FACTORS. Returns the spec by which a policy is chosen."""
    card = {
        "name": "probe",
        "version": 1,
        "description": f"adds {FACTORS[feature]:g} packets for 1 of {feature}",
        "net": {"kind": "mlp", "layers": [1, 1], "activations": ["identity"]},
        "agent": {
            "clock": {"kind": "jiffies", "hz": 10.0},
            "observation": {
                "history": 1,
                "features": [{"name": feature, "offset": 0.0, "scale": 1.0, "clip": [0.0, 1e5]}],
            },
            "action": {"kind": "continuous", "limit": 1e6, "effect": {"does": "add-cwnd"}},
            "base": {"kind": "scheme", "name": "cubic:hystart=classic", "grows": False},
        },
        "training": {"command": "scripts/probe_models.py", "algorithm": "none"},
    }
    tensors = {
        "layers.0.weight": np.array([[FACTORS[feature]]], np.float32),
        "layers.0.bias": np.array([0], np.float32),
    }
    observed = np.array([[0.0], [0.5]], np.float32)
    write(folder, card, tensors, (observed, observed * np.float32(FACTORS[feature])))
    return f"learned:model={folder}"
