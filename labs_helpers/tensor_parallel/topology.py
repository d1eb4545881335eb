"""Which GPUs of a machine are near each other, by `nvidia-smi topo -m`, and where a tensor-parallel group belongs.

    python -m labs_helpers.tensor_parallel.topology            # of this machine; without GPUs, of an example
    nvidia-smi topo -m | python -m labs_helpers.tensor_parallel.topology -    # of another one

What else shows and steers the placement of ranks: placement_settings.py.
"""

from __future__ import annotations

import re
import shutil
import sys

from labs_helpers.launch import program
from labs_helpers.launch.process import ProcessFailed, run
from labs_helpers.tensor_parallel.placement_settings import SETTINGS

# From near to far, in the words of nvidia-smi's own legend; NV has the number of links behind it.
MEANINGS = {
    "NV": "NVLink, as many links bonded together as the number says",
    "PIX": "PCIe, at most one bridge in between",
    "PXB": "PCIe, several bridges in between, but not the processor's host bridge",
    "PHB": "PCIe through the processor's host bridge",
    "NODE": "PCIe through several host bridges of one NUMA node",
    "SYS": "PCIe and the link between the processors' NUMA nodes",
}
# An example of the format, as of four H200 behind NVSwitch, with a network card near each two of them.
EXAMPLE = """\
\tGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID
GPU0\t X \tNV18\tNV18\tNV18\tPIX\tSYS\t0-47,96-143\t0\t\tN/A
GPU1\tNV18\t X \tNV18\tNV18\tNODE\tSYS\t0-47,96-143\t0\t\tN/A
GPU2\tNV18\tNV18\t X \tNV18\tSYS\tPIX\t48-95,144-191\t1\t\tN/A
GPU3\tNV18\tNV18\tNV18\t X \tSYS\tNODE\t48-95,144-191\t1\t\tN/A
NIC0\tPIX\tNODE\tSYS\tSYS\t X \tSYS\t\t\t\t
NIC1\tSYS\tSYS\tPIX\tNODE\tSYS\t X \t\t\t\t

Legend:

  X    = Self
  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes (e.g., QPI/UPI)
"""
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")  # the heading is underlined on a terminal
_KIND = re.compile(r"X|NV\d+|PIX|PXB|PHB|NODE|SYS")

Pairs = dict[tuple[str, str], str]


def parse(text: str) -> Pairs:
    """{("GPU0", "GPU1"): "NV18", …} of what `nvidia-smi topo -m` prints, each pair once, network cards too.

    ValueError where there is no such table in the text, or a line of it that cannot be read.
    """
    lines = _COLOURS.sub("", text).splitlines()
    heading = next((line for line in lines if re.match(r"\s*GPU0\s.*CPU Affinity", line)), None)
    if heading is None:
        raise ValueError(
            "there is no table of `nvidia-smi topo -m` in this text: no heading with GPU0 and CPU Affinity"
        )
    names = heading.partition("CPU Affinity")[0].split()
    pairs: Pairs = {}
    for line in lines:
        name, *kinds = line.split() or [""]
        if name not in names or line is heading:
            continue
        kinds = kinds[: len(names)]
        if len(kinds) < len(names) or not all(map(_KIND.fullmatch, kinds)):
            raise ValueError(f"the line of {name} has {kinds}, not a kind of link to each of {', '.join(names)}")
        for other, kind in zip(names, kinds, strict=True):
            if kind != "X" and (other, name) not in pairs:
                pairs[name, other] = kind
    return pairs


def distance(kind: str) -> int:
    """0 for NVLink, 5 for SYS."""
    return list(MEANINGS).index(re.sub(r"\d+", "", kind))


def nearest_groups(pairs: Pairs) -> tuple[str, list[list[str]]]:
    """(the nearest kind of link between GPUs without its number, the groups in which every two GPUs are that near).

    ("", []) where there are fewer than two GPUs.
    """
    between = {pair: kind for pair, kind in pairs.items() if all(name.startswith("GPU") for name in pair)}
    if not between:
        return "", []
    nearest = min(map(distance, between.values()))
    near = {frozenset(pair) for pair, kind in between.items() if distance(kind) == nearest}
    groups: list[list[str]] = []
    for name in sorted({name for pair in between for name in pair}, key=lambda name: int(name.removeprefix("GPU"))):
        for group in groups:
            if all(frozenset((other, name)) in near for other in group):
                group.append(name)
                break
        else:
            groups.append([name])
    return list(MEANINGS)[nearest], groups


def advice(pairs: Pairs) -> str:
    """Where tensor-parallel groups belong on this machine, in words."""
    kind, groups = nearest_groups(pairs)
    if not groups:
        return "There are not two GPUs here: tensor parallelism would have to leave the machine."
    sets = "; ".join(", ".join(group) for group in groups if len(group) > 1)
    lines = [f"The nearest GPUs ({kind}{'#' if kind == 'NV' else ''}) are {sets}."]
    if kind != "NV":
        lines.append(
            "There is no NVLink: every all-reduce of activations goes over PCIe. Measure tp 2 before you use it."
        )
    lines += [
        f"A tensor-parallel group of up to {max(map(len, groups))} belongs inside such a set: it talks in every layer.",
        "Data parallelism, whose all-reduce comes once per step and can be overlapped, goes between sets and machines.",
    ]
    return "\n".join(lines)


def describe(text: str) -> str:
    """A machine's links in words: each kind that it has, between whom, what it means, and where tensor parallelism
    belongs. text: what `nvidia-smi topo -m` prints. ValueError as `parse`."""
    pairs = parse(text)
    lines = []
    for kind in sorted(set(pairs.values()), key=lambda kind: (distance(kind), kind)):
        joined = [f"{a}–{b}" for (a, b), of_pair in pairs.items() if of_pair == kind]
        shown = ", ".join(joined[:6]) + (f" and {len(joined) - 6} more" if len(joined) > 6 else "")
        lines += [f"{kind:5} {MEANINGS[list(MEANINGS)[distance(kind)]]}", f"      {shown}"]
    return "\n".join([*lines, "", advice(pairs)])


def read() -> str | None:
    """What `nvidia-smi topo -m` prints here; None where there is none, or it has no table."""
    if shutil.which("nvidia-smi") is None:
        return None
    try:
        said = run(["nvidia-smi", "topo", "-m"], timeout=30)
        parse(said)
    except (ProcessFailed, ValueError):
        return None
    return said


def main(arguments: list[str] | None = None) -> None:
    parser = program.Parser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("table", nargs="?", choices=["-"], help="read what `nvidia-smi topo -m` printed from stdin")
    given = parser.parse_args(arguments)
    text = sys.stdin.read() if given.table else read()
    if text is None:
        print("No GPUs here: an example of four that NVSwitch joins, and two network cards.\n")
        text = EXAMPLE
    try:
        print(describe(text))
    except ValueError as error:
        parser.error(str(error))
    for library, rows in SETTINGS.items():
        print(f"\n{library}")
        for setting, what in rows.items():
            print(f"  {setting:32}  {what}")


if __name__ == "__main__":
    program.run(main)
