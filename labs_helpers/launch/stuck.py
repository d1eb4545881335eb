"""Report where ranks stand, or stood when they were ended (from faulthandler's dumps, one line per place)."""

import linecache
import re
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

_FRAME = re.compile(r'  File "(.*)", line (\d+) in (.*)')
_HEAD = "(most recent call first):"
_INSTALLED = (sysconfig.get_path("stdlib"), sysconfig.get_path("purelib"), "<frozen")
_COURSE = str(Path(__file__).parents[1])  # the course may itself be installed
OUTSIDE = "outside your code (starting, or at its end)"
_WORKER = str(Path(__file__).with_name("worker.py"))


@dataclass(frozen=True)
class Frame:
    """One call: the function's name, the file (for a notebook cell, its pseudo file), and the line, counted from 1."""

    function: str
    file: str
    line: int

    @property
    def place(self) -> str:
        """Return the place in words: shift, line 3 of cell [5]"""
        return f"{self.function}, line {self.line} of {cell_of(self.file) or Path(self.file).name}"

    @property
    def source(self) -> str:
        """Return the line's text, '' if it is not available."""
        return linecache.getline(self.file, self.line).strip()

    def __str__(self) -> str:
        """Return place and text: shift, line 3 of cell [5]: comm.Send(block, right)"""
        return f"{self.place}: {self.source}" if self.source else self.place


def read_frames(dump: str) -> tuple[Frame, ...]:
    """Return the calls of the first faulthandler dump in a text, innermost first, down to the user's function or
    script, without those inside the standard library and installed packages."""
    frames = []
    first = dump.partition(_HEAD)[2].partition(_HEAD)[0]
    for name, line, function in _FRAME.findall(first):
        if name in (_WORKER, "<frozen runpy>"):
            break
        if not is_installed(name):
            frames.append(Frame(function, name, int(line)))
    return tuple(frames)


def place_of(frame: FrameType | None) -> str:
    """Return where a thread stands: 'in shift, line 3 of cell [5]', its innermost call in the user's own code."""
    while frame and is_installed(frame.f_code.co_filename):
        frame = frame.f_back
    return f"in {Frame(frame.f_code.co_name, frame.f_code.co_filename, frame.f_lineno).place}" if frame else OUTSIDE


def stack_of(frame: FrameType | None, until: str) -> list[str]:
    """Return a thread's calls in words, innermost first, down to the file `until`, without those of installed packages
    and of the course's communication."""
    found = []
    while frame is not None and frame.f_code.co_filename != until:
        file = frame.f_code.co_filename
        if not is_installed(file) and "communication" not in Path(file).parts:
            found.append(str(Frame(frame.f_code.co_name, file, frame.f_lineno)))
        frame = frame.f_back
    return found


def is_installed(file: str) -> bool:
    """Return True if a file belongs to the standard library or an installed package other than the course."""
    return file.startswith(_INSTALLED) and not file.startswith(_COURSE)


def tell(stuck: Mapping[int, tuple[Frame, ...]]) -> str:
    """Return one line per place: the ranks there, the innermost call, and the call in the user's own function."""
    places: dict[str, list[int]] = {}
    for rank, frames in sorted(stuck.items()):
        places.setdefault(_place(frames), []).append(rank)
    return "\n".join(f"{name_ranks(ranks)}: {place}" for place, ranks in places.items())


def name_ranks(ranks: list[int]) -> str:
    """Name ranks in words: 'rank 2', 'ranks 0-3', 'ranks 0, 2, 3'."""
    ranks = sorted(ranks)
    if len(ranks) > 2 and ranks == list(range(ranks[0], ranks[-1] + 1)):
        return f"ranks {ranks[0]}-{ranks[-1]}"
    return f"rank{'s' if len(ranks) > 1 else ''} {', '.join(map(str, ranks))}"


def name_cells(text: str) -> str:
    """Return a traceback with 'cell [5]' in place of the pseudo files of notebook cells."""
    return re.sub(r'File "([^"]+)"', lambda match: cell_of(match[1]) or match[0], text)


def _place(frames: tuple[Frame, ...]) -> str:
    if not frames:
        return OUTSIDE
    inner, outer = frames[0], frames[-1]
    return f"in {inner}" if inner == outer else f"in {inner}\n    called from {outer}"


def cell_of(file: str) -> str | None:
    """Return 'cell [5]' if IPython compiled a cell under this name, 'a cell' if another kernel did, else None."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    number = getattr(getattr(shell, "compile", None), "_filename_map", {}).get(file)
    if number is not None:
        return f"cell [{number}]"
    return "a cell" if Path(file).parent.name.startswith("ipykernel_") else None
