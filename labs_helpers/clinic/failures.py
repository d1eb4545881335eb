"""Let a rank of a training job fail in each way; record what the job says, and when its last process is gone.

    python -m labs_helpers.clinic.failures

Two ranks train: with NCCL on two GPUs, else with gloo.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Sequence
from typing import Any

from labs_helpers.clinic.failing_rank import WAYS
from labs_helpers.launch import program
from labs_helpers.launch.process import ProcessFailed, run
from labs_helpers.launch.scratch import scratch
from labs_helpers.measure.machine import cores_label, this_machine
from labs_helpers.measure.study import Study

STUDY = Study("failures", "python -m labs_helpers.clinic.failures", machine="2x-nvidia-h200")
RANKS = 2
LAYOUTS = {"dp 2": ("--dp", "2"), "pp 2": ("--pp", "2")}
SMALL = ("--data", "text", "--length", "16", "--width", "32", "--heads", "4", "--batch", "12", "--steps", "4")
TIMEOUT_S = 10  # without progress, after which a stuck rank is named
# torchrun's report of the first failure: a verdict of the ranks' watch, or the exit code of a killed process.
REPORTED = re.compile(
    r"Root Cause.*?rank\s*: (?P<rank>\d+).*?exitcode\s*: (?P<code>-?\d+).*?traceback : (?P<said>[^\n]*)", re.DOTALL
)


def failure(way: str, layout: Sequence[str], ranks: int = RANKS, timeout: float = 120) -> dict[str, Any]:
    """Return {'way', 'seconds' from the failure until the last process is gone, 'output'} of one job that fails.

    Raises RuntimeError if the job does not fail, or exceeds `timeout` seconds.
    """
    with scratch("failures-") as folder:
        moment = folder / "moment"
        command = [
            sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(ranks),
            "-m", "labs_helpers.clinic.failing_rank", way, str(moment), *layout, *SMALL, "--timeout", str(TIMEOUT_S),
        ]  # fmt: skip
        try:
            run(command, timeout=timeout)
        except ProcessFailed as failed:
            if not moment.exists() or "did not end within" in str(failed):
                raise
            return {"way": way, "seconds": time.time() - moment.stat().st_mtime, "output": failed.output}
    raise RuntimeError(f"the job ended without a failure: {way}")


def reported(output: str) -> str:
    """Return what torchrun reports as the first failure: a rank's verdict, or the signal that killed a rank."""
    found = REPORTED.search(output)
    if found is None:
        raise ValueError(f"torchrun reports no failure in\n{output}")
    killed = f"rank {found['rank']} exited with {found['code']}"
    return killed if int(found["code"]) < 0 else found["said"].strip()


def main(arguments: list[str] | None = None) -> None:
    parser = STUDY.parser(__doc__)
    parser.add_argument("--ways", nargs="+", choices=list(WAYS), default=list(WAYS), help="default: all of them")
    parser.add_argument("--layouts", nargs="+", choices=list(LAYOUTS), default=list(LAYOUTS), help="default: both")
    given = parser.parse_args(arguments)
    from labs_helpers.communication.torch_distributed import gpu_per_rank

    if not gpu_per_rank(RANKS):
        os.environ["LABS_DEVICE"] = "cpu"
    machine = this_machine()
    records = []
    for layout in given.layouts:
        for way in given.ways:
            found = failure(way, LAYOUTS[layout])
            said = reported(found["output"])
            print(f"{layout}, {way}: {found['seconds']:.1f} s, {said}", flush=True)
            records.append({
                "study": STUDY.name, "kind": "failure", "layout": layout, "way": way, "seconds": found["seconds"],
                "said": said, "backend": "nccl" if machine.device == "cuda" else "gloo", "timeout_s": TIMEOUT_S,
            })  # fmt: skip
    STUDY.keep(records, given.out, machine=None if machine.device == "cuda" else cores_label())


if __name__ == "__main__":
    program.run(main)
