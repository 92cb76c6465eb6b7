"""What `import headway` offers, loaded when it is first used (docs/python-api.md)."""

from headway.api.errors import Error, Interrupted
from headway.api.lists import list_models, list_scenarios, list_schemes, list_traces
from headway.api.papers import Reproduction, reproduce
from headway.api.results import Picture, Results
from headway.api.run import bench, load
from headway.api.table import Table
from headway.api.training import Training, train
from headway.api.worlds import Gap, gap

__all__ = [
    "Error",
    "Gap",
    "Interrupted",
    "Picture",
    "Reproduction",
    "Results",
    "Table",
    "Training",
    "bench",
    "gap",
    "list_models",
    "list_scenarios",
    "list_schemes",
    "list_traces",
    "load",
    "reproduce",
    "train",
]
