"""Train as train_2d.py does by default, in every layout of 1, 2, 4 and 8 ranks, and measure the distance from one
rank's loss curve.

    python tests/training/every_layout.py [STEPS]      # under the MPI of this Python

This is a program, not a test: an environment with MPICH has no pytest. It needs torch, scikit-learn, mpi4py and
cloudpickle.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from labs_helpers.launch.flavour import find_flavour  # noqa: E402
from labs_helpers.launch.mpirun import run_on_ranks  # noqa: E402
from labs_helpers.training.settings import Settings, make_config  # noqa: E402
from tests.tensor_parallel import ranks as on_ranks  # noqa: E402
from tests.training import runs  # noqa: E402

LAYOUTS = [(dp, ranks // dp) for ranks in (1, 2, 4, 8) for dp in (1, 2, 4, 8) if ranks % dp == 0]
BOUNDS = {"float64": 1e-5, "float32": 1e-3}


def farthest(steps, dtype, data):
    """{(dp, tp): largest distance of a step's loss from one rank's}."""
    config = make_config(data)
    tasks = {(dp, tp): Settings(dp, tp, data, config, steps=steps, dtype=dtype, report=steps) for dp, tp in LAYOUTS}
    by_rank = run_on_ranks(runs.several, 8, runs.in_rounds(tasks, ranks=8), timeout=1200, env=on_ranks.YIELD)
    found = {layout: of_rank[layout] for of_rank in by_rank for layout in of_rank}
    for report in found.values():
        assert not isinstance(report, str), report
    alone = found[1, 1]["losses"]
    return {
        layout: max(abs(a - b) for a, b in zip(report["losses"], alone, strict=True))
        for layout, report in sorted(found.items())
    }


def main(steps):
    flavour = find_flavour()
    print(f"{flavour.name} {flavour.version}, {steps} steps")
    for data in ("digits", "text"):
        for dtype, bound in BOUNDS.items():
            distances = farthest(steps, dtype, data)
            told = ", ".join(f"{dp} × {tp}: {distance:.1e}" for (dp, tp), distance in distances.items())
            print(f"{data}, {dtype}, within {bound:g}: {told}", flush=True)
            assert max(distances.values()) < bound
    print("every layout has the same loss curve")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else Settings.steps)
