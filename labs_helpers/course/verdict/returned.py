"""What an answer returned, before anything of it is compared: as many parts as were asked for."""

from collections.abc import Sequence

from labs_helpers.course.verdict.wrong import Wrong


def expect_tuple(case: str, answer, *names: str) -> tuple:
    """`answer`, a tuple or list with a part for each of `names`, as a tuple; raises Wrong where it is not."""
    if isinstance(answer, (tuple, list)) and len(answer) == len(names):
        return tuple(answer)
    cause = "a return is missing" if answer is None else ""
    raise Wrong(case, f"returned {answer!r:.80}; ({', '.join(names)}) is asked for", cause=cause)


def none_returned(of_ranks: Sequence, what: str = "a return is missing") -> str:
    """The cause where a rank returned None: `what`, unless another rank returned something."""
    return what if all(one is None for one in of_ranks) else "every rank returns it, and not some of them alone"


def expect_order(case: str, parts: tuple, right: tuple, *names: str) -> None:
    """Raises Wrong where `parts`, or their types, are those of `right`, called `names`, in another order."""
    if parts != right and sorted(map(repr, parts)) == sorted(map(repr, right)):
        shown = ", ".join(part.__name__ if isinstance(part, type) else f"{part!r:.40}" for part in parts)
        raise Wrong(case, f"returned ({shown})", cause=f"the order is ({', '.join(names)}).")
