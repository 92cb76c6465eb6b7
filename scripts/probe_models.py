"""Models that only tell what they observe.

A feature times a factor is what they would add to the window. `headwayd run --shadow FILE` writes
each decision down, so the file shows what reached the policy. Meanwhile Cubic controls the flow.
"""

from pathlib import Path

import numpy as np

from headway.models import write

FACTORS = {"network_known": 1000.0, "pna": 1000.0, "pnc_packets": 10.0}
"""Packets that are added for 1 of each feature; the kernel's window takes whole packets."""


def probe(folder: Path, feature: str) -> str:
    """Writes the model that tells of one of FACTORS; the spec by which a policy is chosen."""
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
            "beneath": {"kind": "scheme", "name": "cubic:hystart=classic", "grows": False},
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
