"""What the kernels need of a chip."""

from __future__ import annotations

from labs_helpers.measure.machine import this_machine

FLOAT8 = (8, 9)  # the first compute capability with float8


def check_float8() -> None:
    """Raise RuntimeError, which names the chip, if it does not compute with float8 e4m3."""
    here = this_machine()
    if here.device != "cpu" and (here.capability or (0, 0)) < FLOAT8:
        what = "compute capability {}.{}".format(*here.capability) if here.capability else here.architecture
        raise RuntimeError(
            f"float8 e4m3 needs compute capability {'.'.join(map(str, FLOAT8))} or newer, and this is {here.name}, "
            f"{what}: use int8 or int4"
        )


def has_ptx(architecture: str | None) -> bool:
    """Return whether kernels for this chip may contain PTX: on NVIDIA's, but not in the interpreter (None)."""
    return (architecture or "").startswith("sm_")
