"""Describe the machine: its device, how kernels run on it, and the installed versions.

PyTorch is imported inside the functions, because every MPI rank imports this package and most never touch a tensor.
"""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.util
import os
import platform
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labs_helpers.measure import numpy_index

if TYPE_CHECKING:
    from torch import dtype as Dtype

WHERE_TRITON_RUNS = (
    "Triton is not installed here. It runs on Linux (x86-64 and aarch64). "
    "On macOS open the course in its devcontainer; on Windows use WSL 2; "
    "on Linux install it with `make setup`."
)


class TritonMissing(ImportError):
    """Triton has no wheel for this platform, or is not installed."""

    def _render_traceback_(self) -> list[str]:
        """IPython shows these lines instead of a traceback: what to do, and no frames of the course."""
        return [f"✗ {self}"]


@functools.cache
def has_gpu() -> bool:
    """Return True if torch can use a GPU, NVIDIA or AMD. LABS_DEVICE=cpu in the environment hides it.

    Raises ValueError for other values of LABS_DEVICE.
    """
    wanted = os.environ.get("LABS_DEVICE", "auto")
    if wanted not in ("auto", "cpu"):
        raise ValueError(f"LABS_DEVICE is {wanted!r}; it may be 'cpu', 'auto', or not set")
    if wanted == "cpu":
        return False
    import torch

    return torch.cuda.is_available()


def interpreting() -> bool:
    """Return True if Triton kernels run in Triton's interpreter: there is no GPU, or TRITON_INTERPRET=1."""
    asked_for = os.environ.get("TRITON_INTERPRET", "").lower() in ("1", "true", "yes", "on", "y")
    return asked_for or not has_gpu()


def _mode_of_imported_triton() -> str | None:
    """Return 'compiled' or 'interpreted', which was fixed when Triton was imported; None if it was not imported yet."""
    language: Any = sys.modules.get("triton.language")
    if not hasattr(language, "cdiv"):
        return None
    # tl.cdiv is itself a jitted function, so its type tells the mode it was decorated in.
    return "compiled" if type(language.cdiv).__name__ == "JITFunction" else "interpreted"


def prepare_triton() -> bool:
    """Choose between Triton's interpreter and its compiler. Call this before the first import of Triton; repeating it
    is harmless.

    Without a GPU it sets TRITON_INTERPRET=1; with one, that variable decides. Returns True if kernels are interpreted.

    Raises TritonMissing if Triton is not installed, and RuntimeError if Triton was already imported in the other mode,
    which cannot change within a process.
    """
    if "triton" not in sys.modules and importlib.util.find_spec("triton") is None:
        raise TritonMissing(WHERE_TRITON_RUNS)
    interpreted = interpreting()
    imported, wanted = _mode_of_imported_triton(), "interpreted" if interpreted else "compiled"
    if imported not in (None, wanted):
        raise RuntimeError(
            f"Triton was imported with kernels {imported}; here they have to be {wanted}. In a notebook: restart the "
            "kernel (Kernel → Restart) and run the set-up cell first. In a program: call "
            "labs_helpers.measure.machine.prepare_triton() before the first kernel is imported."
        )
    if interpreted:
        os.environ["TRITON_INTERPRET"] = "1"
        if numpy_index.is_needed():
            numpy_index.mend()
    return interpreted


@dataclass(frozen=True)
class Machine:
    """One machine as the labs see it. Versions are strings, or None if the component is missing."""

    name: str  # the GPU's name, or the processor's model
    device: str  # 'cuda' (also on AMD) or 'cpu'
    architecture: str | None  # 'sm_90', 'gfx942', None without a GPU
    capability: tuple[int, int] | None  # compute capability (major, minor), only NVIDIA
    interpreted: bool  # kernels run in Triton's interpreter
    cores: int  # processor cores this process may use
    memory_bytes: int  # of the GPU, or of the computer without one
    python: str
    torch: str
    triton: str | None
    cuda: str | None  # the CUDA or 'HIP …' version torch was built with
    driver: str | None  # NVIDIA's driver

    @property
    def dtype(self) -> Dtype:
        """Return torch.float16 on a GPU with tensor cores (7.0 and newer, AMD), else torch.float32."""
        import torch

        amd = self.device == "cuda" and self.capability is None
        return torch.float16 if amd or (self.capability or (0, 0)) >= (7, 0) else torch.float32

    @property
    def supports_bfloat16(self) -> bool:
        """Return True if compiled kernels support bfloat16: compute capability 8.0 and newer, and AMD.

        The interpreter does not, because it multiplies the raw bits of bfloat16.
        """
        if self.interpreted or self.device == "cpu":
            return False
        return self.capability is None or self.capability >= (8, 0)

    @property
    def label(self) -> str:
        """Return a short name for a curve: 'NVIDIA H200', '2-core CPU (interpreter)'."""
        return self.name if self.device == "cuda" else f"{self.cores}-core CPU (interpreter)"

    @property
    def tensor_core_warning(self) -> str | None:
        """Return a warning for Turing (T4) with Triton 3.3 or newer, and the command that fixes it; else None."""
        if self.capability != (7, 5) or self.triton is None:
            return None
        if tuple(int(part) for part in self.triton.split(".")[:2]) < (3, 3):
            return None
        return (
            f"On {self.name}, Triton {self.triton} compiles tl.dot without tensor cores; 3.2.0 uses them. "
            "To have them: pip install triton==3.2.0, then restart the kernel."
        )

    def __str__(self) -> str:
        if self.capability:
            where = f"{self.name}, compute capability {'.'.join(map(str, self.capability))}"
        elif self.architecture:
            where = f"{self.name}, {self.architecture}"
        else:
            where = f"{self.name}, {self.cores} core{'' if self.cores == 1 else 's'}"
        kernels = "kernels in Triton's interpreter" if self.interpreted else "compiled kernels"
        triton = f"Triton {self.triton}" if self.triton else "no Triton"
        return f"{where}, {kernels}, torch {self.torch}, {triton}"


@functools.cache
def this_machine() -> Machine:
    """Return the machine of this process, examined once."""
    import torch

    interpreted = interpreting()
    common: dict[str, Any] = dict(
        interpreted=interpreted,
        cores=_usable_cores(),
        python=platform.python_version(),
        torch=torch.__version__,
        triton=_triton_version(),
    )
    if interpreted:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        return Machine(
            name=_processor_name(), device="cpu", architecture=None, capability=None,
            memory_bytes=memory, cuda=None, driver=None, **common,
        )  # fmt: skip
    gpu = torch.cuda.get_device_properties(torch.cuda.current_device())
    amd = torch.version.hip is not None
    return Machine(
        name=gpu.name,
        device="cuda",
        architecture=gpu.gcnArchName.split(":")[0] if amd else f"sm_{gpu.major}{gpu.minor}",
        capability=None if amd else (gpu.major, gpu.minor),
        memory_bytes=gpu.total_memory,
        cuda=f"HIP {torch.version.hip}" if amd else torch.version.cuda,
        driver=None if amd else _nvidia_driver(),
        **common,
    )


def _usable_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _processor_name() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text(errors="replace").splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name" and value.strip():
                return value.strip()
    return platform.processor() or platform.machine() or "unknown processor"


def _triton_version() -> str | None:
    # Builders call the package triton, pytorch-triton-rocm, …; the module's own version is certain.
    if "triton" in sys.modules:
        return sys.modules["triton"].__version__
    for package in importlib.metadata.packages_distributions().get("triton", ()):
        return importlib.metadata.version(package)
    return None


def _nvidia_driver() -> str | None:
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        answer = subprocess.run(query, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return next(iter(answer.stdout.split()), None)


def cores_label() -> str:
    """Return '16-core CPU' for the cores that this process may use, the label of measurements that only use a CPU.

    A rank that is bound to one core would report 1, so the process that starts the ranks calls this.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{cores}-core CPU"
