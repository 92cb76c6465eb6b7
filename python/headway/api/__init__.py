"""What `import headway` offers, loaded when it is first used (docs/python-api.md)."""

from headway.api.decisions import Shadow, shadow
from headway.api.errors import Error, Interrupted
from headway.api.lists import list_models, list_scenarios, list_schemes, list_traces
from headway.api.papers import Reproduction, reproduce
from headway.api.paths import Trial, try_path
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
    "Shadow",
    "Table",
    "Training",
    "Trial",
    "bench",
    "gap",
    "list_models",
    "list_scenarios",
    "list_schemes",
    "list_traces",
    "load",
    "reproduce",
    "shadow",
    "train",
    "try_path",
]
