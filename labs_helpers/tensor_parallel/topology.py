"""Read from `nvidia-smi topo -m` which GPUs are near each other, and where a tensor-parallel group belongs.

    python -m labs_helpers.tensor_parallel.topology            # this machine; an example if it has no GPUs
    nvidia-smi topo -m | python -m labs_helpers.tensor_parallel.topology -    # another machine

placement_settings.py lists settings that show or control the placement of ranks.
"""

from __future__ import annotations

import re
import shutil
import sys

from labs_helpers.launch import program
from labs_helpers.launch.process import ProcessFailed, run
from labs_helpers.tensor_parallel.placement_settings import SETTINGS

# From near to far, by the names in nvidia-smi's legend; the number of links follows NV.
MEANINGS = {
    "NV": "NVLink; the number counts the bonded links",
    "PIX": "PCIe, at most one bridge in between",
    "PXB": "PCIe, several bridges in between, but not the processor's host bridge",
    "PHB": "PCIe through the processor's host bridge",
    "NODE": "PCIe through several host bridges of one NUMA node",
    "SYS": "PCIe and the link between the processors' NUMA nodes",
}
# An example of the format: four H200s behind NVSwitch, with one network card near each pair.
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
_COLORS = re.compile(r"\x1b\[[0-9;]*m")  # the heading is underlined on a terminal
_KIND = re.compile(r"X|NV\d+|PIX|PXB|PHB|NODE|SYS")

Pairs = dict[tuple[str, str], str]


def parse(text: str) -> Pairs:
    """Parse the output of `nvidia-smi topo -m` into {("GPU0", "GPU1"): "NV18", …}, with network cards.

    Each pair appears once. Raises ValueError if the text has no such table, or a line that cannot be read.
    """
    lines = _COLORS.sub("", text).splitlines()
    heading = next((line for line in lines if re.match(r"\s*GPU0\s.*CPU Affinity", line)), None)
    if heading is None:
        raise ValueError(
            "this text has no table of `nvidia-smi topo -m`: a heading with GPU0 and CPU Affinity is missing"
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
    """Return the rank of a kind of link, from 0 for NVLink to 5 for SYS."""
    return list(MEANINGS).index(re.sub(r"\d+", "", kind))


def nearest_groups(pairs: Pairs) -> tuple[str, list[list[str]]]:
    """Return (the nearest kind of link between GPUs, the groups in which every pair of GPUs has this link).

    The kind comes without its number. Returns ("", []) for fewer than two GPUs.
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
    """Explain where tensor-parallel groups belong on this machine."""
    kind, groups = nearest_groups(pairs)
    if not groups:
        return "This machine has fewer than two GPUs, so tensor parallelism would have to leave the machine."
    sets = "; ".join(", ".join(group) for group in groups if len(group) > 1)
    lines = [f"The nearest GPUs ({kind}{'#' if kind == 'NV' else ''}) are {sets}."]
    if kind != "NV":
        lines.append(
            "There is no NVLink, so every all-reduce of activations uses PCIe. Measure tp 2 before you use it."
        )
    lines += [
        f"Put a tensor-parallel group of up to {max(map(len, groups))} inside one set: it communicates in every layer.",
        "Use data parallelism between sets and machines: its all-reduce runs once per step and can overlap compute.",
    ]
    return "\n".join(lines)


def describe(text: str) -> str:
    """Describe each kind of link of a machine, the devices that it joins, and where tensor parallelism belongs.

    text: the output of `nvidia-smi topo -m`. Raises ValueError as `parse` does.
    """
    pairs = parse(text)
    lines = []
    for kind in sorted(set(pairs.values()), key=lambda kind: (distance(kind), kind)):
        joined = [f"{a}–{b}" for (a, b), of_pair in pairs.items() if of_pair == kind]
        shown = ", ".join(joined[:6]) + (f" and {len(joined) - 6} more" if len(joined) > 6 else "")
        lines += [f"{kind:5} {MEANINGS[list(MEANINGS)[distance(kind)]]}", f"      {shown}"]
    return "\n".join([*lines, "", advice(pairs)])


def read() -> str | None:
    """Return the output of `nvidia-smi topo -m` on this machine, or None without a usable table."""
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
    parser.add_argument("table", nargs="?", choices=["-"], help="read the output of `nvidia-smi topo -m` from stdin")
    given = parser.parse_args(arguments)
    text = sys.stdin.read() if given.table else read()
    if text is None:
        print("This machine has no GPUs. Here is an example: four GPUs joined by NVSwitch, and two network cards.\n")
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
