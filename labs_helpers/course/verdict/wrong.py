"""How a check says that an answer is wrong: in a few lines that teach, without a traceback."""

from __future__ import annotations

import linecache
import traceback

from labs_helpers.course.meter import StrayAccess


class Wrong(AssertionError):
    """`case` is what was tried, `message` what came out and why. Shown in a notebook without a traceback."""

    def __init__(self, case: str, message: str):
        self.case, self.message = case, message
        super().__init__(f"{case}: {message}" if case else message)

    def _render_traceback_(self) -> list[str]:
        """IPython shows these lines instead of a traceback."""
        return ["✗ " + line if i == 0 else "  " + line for i, line in enumerate(str(self).splitlines())]


def wrong_from(error: BaseException, files: set[str], case: str = "") -> Wrong:
    """A Wrong that tells an exception raised by the student's code, with the line of theirs it came from.

    `files` are the files (or notebook cells) that hold the student's functions.
    """
    chain = [error]
    while chain[0].__cause__ is not None:
        chain.insert(0, chain[0].__cause__)
    innermost = chain[0]
    if isinstance(innermost, StrayAccess):  # brings its own line
        return Wrong(
            case,
            f"{innermost}\nLikely cause: a mask is missing or too wide on that access, or an offset "
            "uses the wrong stride or index.",
        )
    if isinstance(error, KeyboardInterrupt):
        return Wrong(
            case,
            f"interrupted{_own_line(error, files)}\nLikely cause, if it did not end by itself: a loop "
            "whose end is never reached.",
        )
    text = f"{type(innermost).__name__}: {str(innermost) or _asserted(innermost)}"
    # The interpreter raises anew at each level: the innermost exception that passed the student's code has the line.
    line = next((line for link in chain if (line := _own_line(link, files))), "")
    return Wrong(case, text + line + _hint(text, _dot_shapes(innermost)))


def _asserted(error: BaseException) -> str:
    """The failed line itself, for an error without a message: a bare assert in Triton's own code."""
    frames = traceback.extract_tb(error.__traceback__)
    return frames[-1].line if frames else ""


def _own_line(error: BaseException, files: set[str]) -> str:
    """The innermost line of the student's that led to `error`, or '' when there is none."""
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename in files]
    if not own:
        return ""
    text = linecache.getline(own[-1].filename, own[-1].lineno) or own[-1].line or ""
    return f"\n  line {own[-1].lineno}: {text.strip()}"


def _dot_shapes(error: BaseException) -> str:
    """', here 32×16 and 64×16' where tl.dot refused its operands, from the frame that refused; else ''."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    shapes = [frames[-1].f_locals.get(name) if frames else None for name in ("a_shape", "b_shape")]
    if not all(isinstance(shape, list) for shape in shapes):
        return ""
    return ", here " + " and ".join("×".join(str(getattr(n, "value", n)) for n in shape) for shape in shapes)


def _hint(text: str, dot_shapes: str = "") -> str:
    """A likely cause for the errors that beginners meet most."""
    if "acc.type" in text:
        return "\nLikely cause: tl.dot's accumulator is not float32, or not BLOCK_M × BLOCK_N."
    if "reduction dimension" in text:
        return (
            f"\nLikely cause: tl.dot takes M × K and K × N{dot_shapes}: the inner sizes differ. One of the two is "
            "turned around: a tl.trans is missing or too many, or [:, None] and [None, :] are swapped."
        )
    if "same dtype" in text:
        return "\nLikely cause: tl.dot takes two blocks of one dtype: convert one to the other's, as in p.to(v.dtype)."
    if "unexpected keyword argument 'dim'" in text:
        return "\nLikely cause: dim= is PyTorch's word; Triton's reductions take axis=."
    if "no attribute 'handle'" in text or "no attribute 'element_ty'" in text:
        return "\nLikely cause: a function of torch inside a kernel. There it is tl: tl.zeros, tl.arange, tl.maximum."
    if "for @" in text:
        return "\nLikely cause: a matrix product inside a kernel is tl.dot(a, b, acc), not a @ b."
    if "is not string" in text:
        return '\nLikely cause: print inside a kernel. Take it out, or use tl.device_print("a", a).'
    if "broadcast" in text or "shape" in text:
        return (
            "\nLikely cause: two blocks of different shapes meet; [:, None] makes a column of rows, "
            "[None, :] a row of columns."
        )
    if "arange" in text:
        return "\nLikely cause: tl.arange needs two compile-time numbers whose difference is a power of two."
    return ""
