"""The form that a notebook needs so that nbval checks it."""

import ast
from pathlib import Path

import nbformat
from IPython.core.inputtransformer2 import TransformerManager
from nbval.plugin import find_comment_markers, find_metadata_tags

SIZE_LIMIT = 500_000  # bytes


def faults(path: Path) -> list[str]:
    """One line a fault, which names the code cell by its number and first line; [] if all is well."""
    size = path.stat().st_size
    found = [f"{size:,} bytes; at most {SIZE_LIMIT:,}: make figures smaller"] if size > SIZE_LIMIT else []
    code = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    for number, cell in enumerate(code):
        first_line = next(iter(cell.source.strip().splitlines()), "(empty)")
        found += [f"code cell {number} `{first_line}`: {fault}" for fault in _cell_faults(cell)]
    return found


def _cell_faults(cell):
    markers = dict([*find_metadata_tags(cell.metadata), *find_comment_markers(cell.source)])
    if cell.execution_count is None:
        yield "has no execution count, so nothing is compared: run the notebook, save it with its outputs"
    if any(output.output_type == "error" for output in cell.outputs):
        yield "holds the output of an error"
    for output in cell.outputs:
        if output.get("name") == "stderr":
            yield f"holds what was written to stderr, {output.text.strip().splitlines()[:1]}: end its cause"
    if markers.get("check_exception"):
        yield "is marked raises-exception, which passes whether or not it raises"
    if markers.get("skip"):
        yield "is marked to be skipped"
    if starts_process(cell.source):
        yield "starts a process with `!`, which passes when that fails: use labs_helpers.launch"


def starts_process(source: str) -> bool:
    """True for `!command`, `x = !command`, `!!command` and their magics (%system, %sx, %%!)."""
    try:
        tree = ast.parse(TransformerManager().transform_cell(source))
    except SyntaxError:
        return False  # nbval reports it
    return any(_is_shell_call(node) for node in ast.walk(tree))


def _is_shell_call(node) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Call(func=ast.Name("get_ipython")), attr=method), args=args):
            first = args[0].value if args and isinstance(args[0], ast.Constant) else None
            shell_magic = method.startswith("run_") and first in ("system", "sx", "sc", "!", "!!")
            return method in ("system", "getoutput") or shell_magic
    return False
