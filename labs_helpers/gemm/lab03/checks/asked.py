"""What an answer asked of the student's own `prune`: with which arguments, and what it was given."""

from contextlib import contextmanager

from labs_helpers.course.own_memory import global_names
from labs_helpers.course.verdict import Wrong


class Asked:
    """`calls` are the arguments of `prune`'s calls, (configs, M, N, K, chip); `kept` is all that they returned, in
    order, each once."""

    def __init__(self):
        self.calls, self.kept = [], []

    def expect(self, case: str, M: int, N: int, K: int, chip, given: int | None = None) -> None:
        """Raises Wrong where prune was asked for another shape or chip, or about fewer than `given` configurations."""
        for configs, *shape, asked_chip in self.calls:
            if given and len(configs) < given:
                found = f"prune was asked about {len(configs)} configurations, and {given} were given"
                raise Wrong(case, found, cause="first prune all that are given, then draw from what it keeps.")
            if tuple(shape) != (M, N, K):
                found = f"prune was asked for {'×'.join(map(str, shape))}, and the shape is {M}×{N}×{K}"
                raise Wrong(case, found, cause="M, N and K change their places, or another shape's are passed.")
            if asked_chip != chip:
                raise Wrong(
                    case, "prune was asked for another chip than `chip`", cause="pass on the chip you are given."
                )


@contextmanager
def asking(student):
    """Inside, the `prune` that `student` finds under that name also writes into the Asked that this yields."""
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
