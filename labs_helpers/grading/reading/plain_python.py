"""Convert a cell's source to Python, without magics and shell commands, which no answer needs; or say why that
fails."""

from __future__ import annotations

import ast
import re
import warnings

MOST_CHARACTERS = 50_000  # the longest exercise cell has 4,000
MOST_BITS = 4_096  # of a number
# `%%time`, `%timeit f()`, `!pip list`, `f?`
_NOT_PYTHON = re.compile(r"^([ \t]*)(?:%|!|\w[\w.]*\?).*$", re.MULTILINE)


def plain_python(source: str) -> tuple[str, str]:
    """Return (Python, why it is none, or ''). A line for IPython becomes `pass`, so that lines keep their numbers."""
    if len(source) > MOST_CHARACTERS:
        return source, f"the cell has {len(source):,} characters; more than {MOST_CHARACTERS:,} are not read"
    problem = _problem(source)
    if problem and not _problem(text := _NOT_PYTHON.sub(r"\1pass", source)):
        return text, ""
    return source, problem


def _problem(source: str) -> str:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of invalid escapes in strings
            tree = ast.parse(source)
        numbers = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant))
        if any(isinstance(number, int) and number.bit_length() > MOST_BITS for number in numbers):
            return f"a number of more than {MOST_BITS:,} bits"  # written out again, it would be an error
    except SyntaxError as error:
        return f"SyntaxError in line {error.lineno}: {error.msg}"
    except (ValueError, RecursionError, MemoryError) as error:  # of what is nested without end
        return f"{type(error).__name__}: {error}"
    return ""
