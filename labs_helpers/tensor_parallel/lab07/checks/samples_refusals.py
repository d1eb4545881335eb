"""What exercise 3 has to refuse: a number of samples that dp_size does not divide."""

import numpy as np

from labs_helpers.course.verdict import Wrong, describe_error
from labs_helpers.course.verdict.copies import copied
from labs_helpers.tensor_parallel.lab07.checks.samples_causes import Split

ASSERTED = "assert raises AssertionError, and `python -O` skips it: raise ValueError(…)"


def expect_refused(student, split: Split, x: np.ndarray, y: np.ndarray) -> None:
    """Raises Wrong unless every rank raises ValueError."""
    case = f"mp {split.mp_size} × dp {split.dp_size}, {split.n} samples"
    asked = f"{split.dp_size} does not divide {split.n}: ValueError is asked for"
    returned = {}
    for rank in split.ranks:
        try:
            returned[rank] = student(copied(x), copied(y), split.mp_size, split.dp_size, rank)
        except ValueError:
            continue
        except Exception as error:
            cause = ASSERTED if isinstance(error, AssertionError) else ""
            raise Wrong(
                case, f"rank {rank} raised {describe_error(student, error).found}\n{asked}", cause=cause
            ) from error
    if not returned:
        return
    rank = next(iter(returned))
    if len(returned) < len(split.ranks):
        others = ", ".join(str(one) for one in split.ranks if one not in returned)
        found = f"rank {rank} goes on, and ranks {others} raise ValueError"
        raise Wrong(case, found, cause="whether n can be split does not depend on the rank")
    raise Wrong(case, f"nothing is raised, and {asked}", cause=_what_happened(split, list(returned.values())))


def _what_happened(split: Split, answers: list) -> str:
    if all(answer is None or _is_error(answer) for answer in answers):
        return "return and print end in silence, and the caller goes on: raise ValueError(…)"
    try:
        lengths = [len(x) for x, _ in answers[:: split.mp_size]]
    except TypeError:
        return ""
    if sum(lengths) < split.n:
        return f"// rounds down, and the models get {' + '.join(map(str, lengths))} of {split.n} samples: some are lost"
    if len(set(lengths)) > 1:
        return f"the parts have {' + '.join(map(str, lengths))} samples; the copies of the model need equally many"
    return ""


def _is_error(answer) -> bool:
    return isinstance(answer, Exception) or (isinstance(answer, type) and issubclass(answer, Exception))
