"""Race this package's collectives against the native ones at their best, and fit the cost model.

    python -m labs_helpers.collectives.study                      # this machine
    python -m labs_helpers.collectives.study --quick --ranks 4 --out /tmp/collectives.jsonl

Every record carries the OMPI_MCA_* of its run. The fastest of ours at each size goes into the table of
`algorithm="auto"`.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace

from labs_helpers.collectives.race import native_settings
from labs_helpers.collectives.race.native_settings import DEFAULT, SINGLE_COPY, Setting
from labs_helpers.collectives.race.race import SIZES
from labs_helpers.collectives.race.records import NATIVE, costs_of, fastest, middle, table
from labs_helpers.launch import program
from labs_helpers.launch.flavour import find_flavour
from labs_helpers.measure.machine import cores_label
from labs_helpers.measure.options import count, file_to_write
from labs_helpers.measure.records import frame
from labs_helpers.measure.study import Study, as_text

STUDY = Study("collectives", "python -m labs_helpers.collectives.study", "16-core CPU")
load = STUDY.load
FUNCTIONS = ("allreduce", "alltoall")
QUICK_SIZES = tuple(2**i for i in (3, 6, 10, 13, 16, 20, 23, 26))


def race_on(comm, function_algorithms: dict, sizes, seconds: float, ping_pong: bool) -> tuple[str, list[dict]]:
    """Measure one run of ranks; return MPI's version and, on rank 0, the records of the races and, if wanted, the
    ping-pong; [] elsewhere."""
    from mpi4py import MPI

    from labs_helpers.collectives.race import ping_pong as local
    from labs_helpers.collectives.race.race import race

    records = []
    if ping_pong and comm.size > 1:
        records += local.ping_pong(comm) + local.ping_pong(comm, together=True) + local.local_work(comm)
    for function, algorithms in function_algorithms.items():
        records += race(comm, function, algorithms, sizes, seconds)
    return MPI.Get_library_version().strip(" \0\n").splitlines()[0].strip(), records


def measure(
    ranks: int,
    functions=FUNCTIONS,
    sizes=SIZES,
    seconds: float = 0.06,
    timeout: float = 120,
    every_setting: bool = True,
    turns: int = 1,
) -> list[dict]:
    """Return the records of a whole race on `ranks` ranks: ours, native under every setting (or only by default),
    ping-pong.

    Ours and native by default run side by side in one start of the ranks; every other native setting has its own start.
    One that fails or hangs is reported and left out. Raises what `run_on_ranks` does if ours fails. turns: how often
    all of this is repeated. Of each measurement the middle one is kept, so that a machine that slows down or speeds up
    does so for all candidates.
    """
    return middle(
        [
            record
            for _ in range(turns)
            for record in _measure_once(ranks, functions, sizes, seconds, timeout, every_setting)
        ]
    )


def _measure_once(ranks: int, functions, sizes, seconds: float, timeout: float, every_setting: bool) -> list[dict]:
    from labs_helpers.collectives.interface import ALGORITHMS
    from labs_helpers.launch.mpirun import RanksFailed, run_on_ranks

    records, refused = [], {}
    for setting in native_settings.native_settings(functions, ranks, None if every_setting else set()):
        setting = replace(setting, env={k: v for k, v in setting.env.items() if k not in refused})
        first = setting.names[next(iter(setting.names))] == DEFAULT
        algorithms = {f: (*_ours(ALGORITHMS[f]), NATIVE) if first else (NATIVE,) for f in setting.names}
        effort, limit = (seconds, timeout) if first else (seconds / 3, timeout / 2)  # many settings, one candidate each
        try:
            library, got = run_on_ranks(
                race_on, ranks, algorithms, sizes, effort, first, timeout=limit, env=setting.env
            )[0]
        except RanksFailed as error:
            if first:
                raise
            if SINGLE_COPY in setting.names.values():
                refused = setting.env  # a container may forbid it; the others race without
            print(
                f"{ranks} ranks: native, {' / '.join(set(setting.names.values()))}, is left out: "
                f"{str(error).splitlines()[0]}",
                flush=True,
            )
            continue
        # The ranks' own view of MPI, because this process has not started one.
        on = {"mpi": library, "mpi_settings": _mpi_settings(setting)}
        records += [
            {"study": "collectives", **record, "setting": setting.names.get(record.get("function"), DEFAULT), "on": on}
            for record in got
        ]
    return records


def main(arguments=None) -> None:
    parser = STUDY.parser(__doc__)
    parser.add_argument("--ranks", type=count, nargs="+", help="default: 2 4 8, with --quick 8")
    parser.add_argument("--functions", nargs="+", choices=FUNCTIONS, default=FUNCTIONS)
    parser.add_argument(
        "--turns", type=count, help="how often to measure; the middle counts; default: 3, with --quick 1"
    )
    parser.add_argument("--quick", action="store_true", help="eight sizes; kept only with --out or --record")
    parser.add_argument("--default-only", action="store_true", help="native by default alone, not under every setting")
    parser.add_argument("--table", type=file_to_write, help="write the data of algorithm='auto' to this JSON file")
    given = parser.parse_args(arguments)
    # This measures the processor, so torch need not look for a GPU.
    os.environ["LABS_DEVICE"] = "cpu"
    machine = cores_label()
    sizes, seconds, turns = (QUICK_SIZES, 0.03, 1) if given.quick else (SIZES, 0.06, 3)
    turns = given.turns or turns
    records = []
    numbers = given.ranks or ((8,) if given.quick else (2, 4, 8))
    for place, ranks in enumerate(numbers, start=1):
        print(f"[{place}/{len(numbers)}] {ranks} ranks: {', '.join(given.functions)}", flush=True)
        got = measure(ranks, given.functions, sizes, seconds, turns=turns, every_setting=not given.default_only)
        records += got
        print(f"{ranks} ranks: ", end="")
        if given.quick and not given.out:
            print(f"{len(got)} records (not kept)", flush=True)
        else:
            STUDY.keep(got, given.out, machine=machine)
    rows = frame(records)
    if given.table:
        given.table.write_text(json.dumps(fastest(rows), indent=1) + "\n")
    for ranks in sorted(rows["ranks"].unique()):
        if ranks > 1:
            print(f"{ranks} ranks: one pair {costs_of(rows, ranks, together=False)}; all pairs {costs_of(rows, ranks)}")
    for function in given.functions:
        print(f"\n{function}, {rows['ranks'].max()} ranks\n{as_text(table(rows, function, rows['ranks'].max()))}")


def _ours(algorithms) -> tuple[str, ...]:
    """Return our candidates. `auto` is derived from this race, and on one machine the hierarchical algorithm is the
    shared-memory one."""
    return tuple(name for name in algorithms if name not in (NATIVE, "auto", "hierarchical"))


def _mpi_settings(setting: Setting) -> dict[str, str]:
    """Return every OMPI_MCA_* in the environment that `run_on_ranks` gives the ranks."""
    environment = find_flavour().environment() | os.environ | setting.env
    return {name: value for name, value in sorted(environment.items()) if name.startswith("OMPI_MCA_")}


if __name__ == "__main__":
    program.run(main)
