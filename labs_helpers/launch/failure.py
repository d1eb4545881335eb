"""Build the error of failed ranks from the files that each left in its folder (see worker.py): which rank raised,
and where each rank was."""

from pathlib import Path
from typing import Any

from labs_helpers.launch.process import OUTPUT_LIMIT, left_out
from labs_helpers.launch.stuck import Frame, name_cells, name_ranks, read_frames, tell
from labs_helpers.launch.worker import OUTPUT_PART

SHOWN = 2000  # characters of a rank's output in a message


class RanksFailed(RuntimeError):
    """A rank raised an error or died.

    `.outputs`: what each rank printed, in rank order. By rank: `.errors` (the tracebacks, as text) and `.stuck` (the
    calls, innermost first, of ranks that crashed or were ended). `.silent`: the ranks that ended without a message.
    """

    def __init__(
        self,
        message: str,
        outputs: list[str],
        errors: dict[int, str],
        stuck: dict[int, tuple[Frame, ...]],
        silent: list[int],
    ):
        super().__init__(message)
        self.outputs, self.errors, self.stuck, self.silent = outputs, errors, stuck, silent

    def _render_traceback_(self) -> list[str]:
        """Return what a notebook shows: only the ranks' errors, without the calls that led to the launch."""
        return [f"{type(self).__name__}: {self}"]

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.outputs, self.errors, self.stuck, self.silent)


class RanksTimeout(RanksFailed):
    """The ranks exceeded the time limit and were ended."""


def failure(
    folder: Path,
    ranks: int,
    headline: str,
    said: str = "",
    kind: type[RanksFailed] = RanksFailed,
    with_mpirun: bool = False,
) -> RanksFailed:
    """Return the error to raise. `said`: mpirun's own output, shown if the ranks give no reason. with_mpirun: mpirun
    was ended first, and its ranks with it."""
    errors, stuck, crashes, ended, silent = {}, {}, {}, {}, []
    for rank in range(ranks):
        dump = read_text(folder / f"{rank}.where")
        if (done := folder / f"{rank}.done").exists():
            ended[rank] = "returned" if done.stat().st_size else "ended"
            continue
        if (folder / f"{rank}.error").exists():
            errors[rank] = name_cells(read_text(folder / f"{rank}.error"))
        elif dump:
            stuck[rank] = read_frames(dump)
            if dump.startswith("Fatal"):
                crashes[rank] = dump.splitlines()[0]
        else:
            silent.append(rank)
    parts = [headline]
    parts += [f"{name_ranks(those)} raised:\n{text}" for text, those in _by_value(errors).items()]
    parts += [f"{name_ranks(those)} crashed: {text}" for text, those in _by_value(crashes).items()]
    if silent and any(folder.glob("*.where")) and not with_mpirun:
        parts.append(f"{name_ranks(silent)} ended without a word: killed, or by os._exit.")
    parts += [f"{name_ranks(those)} had {how} before." for how, those in _by_value(ended).items()]
    if stuck:
        parts.append(f"When they were ended:\n{tell(stuck)}")
    if said.strip() and not (errors or crashes or stuck and kind is RanksTimeout):
        parts.append(f"mpirun said:\n{_last_lines(said, 15)}")
    outputs = read_outputs(folder, ranks)
    parts += [f"{name_ranks(those)} printed:\n{text}" for text, those in _by_value(_ends(outputs)).items() if text]
    return kind("\n".join(parts), outputs, errors, stuck, silent)


def read_outputs(folder: Path, ranks: int) -> list[str]:
    """Return what each rank printed; beyond OUTPUT_LIMIT bytes, its beginning and end (see worker.py)."""
    return [_read_parts(folder / f"{rank}.output") for rank in range(ranks)]


def _read_parts(first: Path) -> str:
    parts = sorted(first.parent.glob(f"{first.name}.*"), key=lambda part: int(part.suffix[1:]))
    if not parts:
        return read_text(first)
    end = b"".join(part.read_bytes() for part in parts)[-OUTPUT_PART:]
    total = int(parts[-1].suffix[1:]) * OUTPUT_PART + parts[-1].stat().st_size
    gap = left_out(total - OUTPUT_PART - len(end)) if total > OUTPUT_PART + len(end) else ""
    return read_text(first) + gap + end.decode(errors="replace")


def read_text(file: Path) -> str:
    """Return at most OUTPUT_LIMIT bytes of a file as text; '' if it does not exist."""
    if not file.exists():
        return ""
    with file.open("rb") as stream:
        return stream.read(OUTPUT_LIMIT).decode(errors="replace")


def _by_value(texts: dict[int, str]) -> dict[str, list[int]]:
    ranks: dict[str, list[int]] = {}
    for rank, text in texts.items():
        ranks.setdefault(text, []).append(rank)
    return ranks


def _ends(outputs: list[str]) -> dict[int, str]:
    return {rank: _last_lines(text, 10) for rank, text in enumerate(outputs)}


def _last_lines(text: str, count: int) -> str:
    """Return the last lines, and of very long lines the last SHOWN characters."""
    shown = "\n".join(text.strip().splitlines()[-count:])
    return shown if len(shown) <= SHOWN else f"… {shown[-SHOWN:]}"
