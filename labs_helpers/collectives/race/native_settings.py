"""The settings of Open MPI's own collectives, each raced in separate runs, so that ours faces the best."""

from __future__ import annotations

import re
from dataclasses import dataclass

from labs_helpers.launch.flavour import find_flavour
from labs_helpers.launch.process import ProcessFailed, run

DEFAULT, SINGLE_COPY = "default", "single copy"
# The numbers of coll/tuned, the same in Open MPI 4.1 and 5 (`ompi_info --param coll tuned --level 9` lists them).
TUNED = {
    "allreduce": {1: "linear", 2: "reduce + broadcast", 3: "recursive doubling", 4: "ring", 5: "segmented ring",
                  6: "rabenseifner"},
    "alltoall": {1: "linear", 2: "pairwise", 3: "bruck", 4: "linear, synchronised"},
}  # fmt: skip
SEGMENT = 2**20  # bytes of a segment, for algorithms that split their messages


@dataclass(frozen=True)
class Setting:
    """A setting. `names`: function → the setting's name in that function's records. `env`: its OMPI_MCA_*."""

    names: dict[str, str]
    env: dict[str, str]


def native_settings(functions, ranks: int, installed: set[str] | None = None) -> list[Setting]:
    """Return the settings: the environment's default; single-copy off and on; and with it on, every algorithm of
    coll/tuned by force, and the components sm, xhc and han with priority, if they are installed.

    functions: of 'allreduce' and 'alltoall'; one run serves both, each with its own setting. installed:
    'framework:component' names, by default those that `ompi_info` lists. Without Open MPI only the default is left. On
    a single node han hands over to the component behind it, so that setting measures the default again.
    """
    installed = components() if installed is None else installed
    settings = [Setting(dict.fromkeys(functions, DEFAULT), {})]
    if not installed:
        return settings
    if "smsc:cma" in installed:  # Open MPI 5
        off, on = {"OMPI_MCA_smsc": "^cma,xpmem,knem"}, {"OMPI_MCA_smsc": "cma"}
    else:
        off, on = ({"OMPI_MCA_btl_vader_single_copy_mechanism": way} for way in ("none", "cma"))
    settings += [
        Setting(dict.fromkeys(functions, name), env) for name, env in (("single copy off", off), (SINGLE_COPY, on))
    ]
    for number in range(1, 1 + max((len(_forced(f, ranks)) for f in functions), default=0)):
        names = {f: f"tuned: {_forced(f, ranks)[number]}" for f in functions if number in _forced(f, ranks)}
        env = on | {"OMPI_MCA_coll_tuned_use_dynamic_rules": "1"}
        for function in names:
            env |= {
                f"OMPI_MCA_coll_tuned_{function}_algorithm": str(number),
                f"OMPI_MCA_coll_tuned_{function}_algorithm_segmentsize": str(SEGMENT),
            }
        settings.append(Setting(names, env))
    for component in ("sm", "xhc", "han"):
        if f"coll:{component}" in installed:
            # sm and xhc have no all-to-all of their own.
            served = [f for f in functions if component == "han" or f == "allreduce"]
            if served:
                settings.append(
                    Setting(dict.fromkeys(served, component), on | {f"OMPI_MCA_coll_{component}_priority": "100"})
                )
    return settings


def components() -> set[str]:
    """Return 'framework:component' of everything that the installed Open MPI has; empty for another MPI or without
    `ompi_info`."""
    if find_flavour().name != "Open MPI":
        return set()
    try:
        listed = run(["ompi_info", "--parsable"], timeout=30)
    except (FileNotFoundError, ProcessFailed):
        return set()
    return {f"{framework}:{component}" for framework, component in re.findall(r"^mca:(\w+):(\w+):", listed, re.M)}


def _forced(function: str, ranks: int) -> dict[int, str]:
    """Return number → name of the algorithms that `function` can be forced to; all-to-all has one that is only for
    two ranks."""
    two = {5: "two ranks"} if function == "alltoall" and ranks == 2 else {}
    return TUNED.get(function, {}) | two
