"""One answer that a student might give; each lab has a table of them, written without knowledge of the checks."""

from dataclasses import dataclass

TRITON = "import torch\nimport triton\nimport triton.language as tl\n\n"  # where a whole answer's kernel begins


@dataclass(frozen=True)
class Answer:
    """An answer to an exercise, and what its check has to say of it.

    changes: what to replace in the reference (or in `source`, where the whole answer is given).
    says: a pattern of the cause that the check's message names; '' where it is only caught; None
    where the answer is right.
    """

    exercise: str
    what: str
    changes: tuple | list = ()
    says: str | None = ""
    source: str | None = None
