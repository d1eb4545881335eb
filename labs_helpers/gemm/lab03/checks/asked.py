"""Record how an answer calls the student's own `prune`, and what `prune` returns."""

from contextlib import contextmanager

from labs_helpers.course.own_memory import global_names
from labs_helpers.course.verdict import Wrong


class Asked:
    """The recorded calls of `prune`.

    calls: their arguments, (configs, M, N, K, chip). kept: all configurations that they returned, in order, each once.
    """

    def __init__(self):
        self.calls, self.kept = [], []

    def expect(self, case: str, M: int, N: int, K: int, chip, given: int | None = None) -> None:
        """Raise Wrong if a call was for another shape or chip, or had fewer than `given` configurations."""
        for configs, *shape, asked_chip in self.calls:
            if given and len(configs) < given:
                found = f"your function passed {len(configs)} of the {given} configurations to prune"
                raise Wrong(case, found, cause="first prune all configurations, then draw from those that it keeps.")
            if tuple(shape) != (M, N, K):
                found = f"your function called prune for {'×'.join(map(str, shape))}, but the shape is {M}×{N}×{K}"
                raise Wrong(case, found, cause="M, N and K are swapped, or belong to another shape.")
            if asked_chip != chip:
                raise Wrong(
                    case, "your function called prune for another chip than `chip`", cause="pass `chip` to prune."
                )


@contextmanager
def asking(student):
    """Record the calls that `student` makes to the function named `prune`, inside the `with` block."""
    namespace, asked = global_names(student), Asked()
    own = namespace.get("prune")

    def prune(configs, M, N, K, chip):
        configs = list(configs)
        kept = own(configs, M, N, K, chip)
        asked.calls.append((configs, M, N, K, chip))
        kept = list(kept)
        asked.kept += [config for config in kept if config not in asked.kept]
        return kept

    if own is None:
        yield asked
        return
    namespace["prune"] = prune
    try:
        yield asked
    finally:
        namespace["prune"] = own
