"""Plan a training run: memory, traffic, and time of each strategy or layout, and the choice among them.

`plan.plan` answers for a batch per GPU and eager code like this course's: which ZeRO stage, or tensor parallelism
inside a node? `find_layouts` answers for a global batch and tuned libraries: which dp × tp × pp? Both use the same
accounting of states and traffic and the same model of links. They differ in the activations that kernels keep, and in
the fraction of the peak that compute reaches.
"""

from typing import TYPE_CHECKING

from labs_helpers.public import lazily

if TYPE_CHECKING:
    from labs_helpers.planner.candidate import evaluate
    from labs_helpers.planner.cluster import Cluster
    from labs_helpers.planner.layout import Layout, Run
    from labs_helpers.planner.model_size import Model
    from labs_helpers.planner.search import find_layouts

__all__ = ["Cluster", "Layout", "Model", "Run", "evaluate", "find_layouts"]
__getattr__, __dir__ = lazily(
    __name__,
    {
        "Cluster": "cluster",
        "Layout": "layout",
        "Model": "model_size",
        "Run": "layout",
        "evaluate": "candidate",
        "find_layouts": "search",
    },
)
