"""A look at what the compiler makes of a kernel, for a row of GPUs, none of which has to be here."""

from __future__ import annotations

from labs_helpers.bench.aot import TARGETS, compile_all, job
from labs_helpers.bench.launches import record_launches

FOR = ("sm_75", "sm_80", "sm_90", "sm_100", "gfx942")


def look_at(function, *tensors, targets=FOR) -> None:
    """Prints for each target whether the last kernel that `function(*tensors)` launches uses tensor cores, and its
    shared memory, registers and spills. The kernel is not run: it may be one that no GPU here could start.
    Raises CompileError where a target's compiler refuses it."""
    with record_launches(run=False) as launches:
        function(*tensors)
    for compiled in compile_all([job(launches[-1], target) for target in targets]):
        answer = "yes" if compiled.uses_tensor_cores else "no"
        found = ", ".join(f"{count} × {name}" for name, count in compiled.tensor_core.items()) or "plain arithmetic"
        spilled = f", {compiled.spills} B spilled" if compiled.spills else ""
        print(f"{compiled.target:7} {TARGETS[compiled.target]:10}  tensor cores? {answer:3}  {found}; "
              f"{compiled.shared:,} B shared, {compiled.registers} registers{spilled}")
