"""The error of ranks that failed, from what each left in its folder (see worker.py): who raised, who stood where."""

from pathlib import Path
from typing import Any

from labs_helpers.launch.process import OUTPUT_LIMIT
from labs_helpers.launch.stuck import Frame, name_cells, name_ranks, read_frames, tell


class RanksFailed(RuntimeError):
    """A rank raised or died. `.outputs`: what each rank printed, in rank order. By rank: `.errors` (the traceback of
    those that raised, as text) and `.stuck` (the calls, innermost first, of those that were ended from outside or
    crashed). `.silent`: the ranks that ended without a word."""

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
        """What a notebook shows: the calls that led to the launch would only hide what the ranks did."""
        return [f"{type(self).__name__}: {self}"]

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.outputs, self.errors, self.stuck, self.silent)


class RanksTimeout(RanksFailed):
    """The ranks did not end within the time limit and were ended."""


def failure(
    folder: Path, ranks: int, headline: str, said: str = "", kind: type[RanksFailed] = RanksFailed
) -> RanksFailed:
    """The error to raise. `said` is what mpirun itself printed: shown where the ranks say nothing of the reason."""
    errors, stuck, crashes, silent = {}, {}, {}, []
    for rank in range(ranks):
        dump = read_text(folder / f"{rank}.where")
        if (folder / f"{rank}.done").exists():
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
    if silent and any(folder.glob("*.where")):
        parts.append(f"{name_ranks(silent)} ended without a word: killed, or by os._exit.")
    if stuck:
        parts.append(f"When they were ended:\n{tell(stuck)}")
    if said.strip() and not (errors or crashes or stuck and kind is RanksTimeout):
        parts.append(f"mpirun said:\n{_last_lines(said, 15)}")
    outputs = read_outputs(folder, ranks)
    parts += [f"rank {rank} printed:\n{_last_lines(text, 10)}" for rank, text in enumerate(outputs) if text.strip()]
    return kind("\n".join(parts), outputs, errors, stuck, silent)


def read_outputs(folder: Path, ranks: int) -> list[str]:
    return [read_text(folder / f"{rank}.output") for rank in range(ranks)]


def read_text(file: Path) -> str:
    """At most OUTPUT_LIMIT bytes of it; an absent file is empty."""
    if not file.exists():
        return ""
    with file.open("rb") as stream:
        return stream.read(OUTPUT_LIMIT).decode(errors="replace")


def _by_value(texts: dict[int, str]) -> dict[str, list[int]]:
    ranks: dict[str, list[int]] = {}
    for rank, text in texts.items():
        ranks.setdefault(text, []).append(rank)
    return ranks


def _last_lines(text: str, count: int) -> str:
    return "\n".join(text.strip().splitlines()[-count:])
