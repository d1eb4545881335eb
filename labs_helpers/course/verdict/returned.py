"""What an answer returned, before anything of it is compared: as many parts as were asked for."""

from labs_helpers.course.verdict.wrong import Wrong


def expect_tuple(case: str, answer, *names: str) -> tuple:
    """`answer`, a tuple with a part for each of `names`; raises Wrong where it is not."""
    if isinstance(answer, tuple) and len(answer) == len(names):
        return answer
    raise Wrong(case, f"returned {answer!r:.80}; ({', '.join(names)}) is asked for")
