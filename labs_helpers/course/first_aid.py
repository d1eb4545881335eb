"""Check which components work on this machine and how to fix the others: python -m labs_helpers.course.first_aid

Prints one line per component: [OK], [FAIL] with the fix, or [--] if something optional is missing. Everything that can
hang or crash runs in a separate process. The exit status is 1 if a component failed.
"""

import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

from labs_helpers.launch.process import ProcessFailed, run

SET_UP = "make setup"
KERNEL = """
from labs_helpers.measure.machine import prepare_triton, this_machine
interpreted = prepare_triton()
import torch, triton, triton.language as tl

@triton.jit
def double(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x_ptr + i, 2 * tl.load(x_ptr + i, mask=i < n), mask=i < n)

x = torch.arange(5.0, device=this_machine().device)
double[(1,)](x, 4, BLOCK=8)
assert x.tolist() == [0, 2, 4, 6, 4], x
print(f"Triton {triton.__version__}, a kernel ran", "in the interpreter" if interpreted else "on the GPU")
"""
RANKS = """
from mpi4py import MPI
ranks = MPI.COMM_WORLD.allreduce(1)
MPI.COMM_WORLD.rank or print(ranks, MPI.Get_library_version())
"""
JUPYTER = """
from jupyter_client.manager import start_new_kernel
manager, client = start_new_kernel(kernel_name="python3", startup_timeout=25)
try:
    assert client.execute_interactive("print(6 * 7)", timeout=10)["content"]["status"] == "ok"
finally:
    client.stop_channels()
    manager.shutdown_kernel(now=True)
"""


class Trouble(Exception):
    """A component that does not work: what is wrong, and a fix in one line."""

    def __init__(self, wrong: str, fix: str, optional: bool = False):
        super().__init__(wrong)
        self.wrong, self.fix, self.optional = wrong, fix, optional


def python() -> str:
    return f"Python {'.'.join(map(str, sys.version_info[:3]))}"


def torch() -> str:
    return _python("import torch; a = torch.ones(2, 2); assert (a @ a).sum() == 8; print('torch', torch.__version__)")


def triton() -> str:
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder, "kernel.py")  # Triton reads a kernel's source from its file
        program.write_text(KERNEL)
        return _python(f"import runpy; runpy.run_path({str(program)!r})").splitlines()[-1]


def gpu() -> str:
    look = "from labs_helpers.measure.machine import *; print(this_machine() if has_gpu() else '')"
    found = _python(look).strip()
    if not found and shutil.which("nvidia-smi"):
        raise Trouble(
            "this machine has an NVIDIA driver, but torch finds no GPU",
            "install a build of torch for the CUDA version that nvidia-smi shows",
        )
    return f"GPU: {found}" if found else "no GPU: kernels run in Triton's interpreter"


def tensor_cores() -> str:
    look = "from labs_helpers.measure.machine import *; print(this_machine().tensor_core_warning or '')"
    if _python(look).strip():
        wrong = "this Triton does not use this GPU's tensor cores"
        raise Trouble(wrong, "pip install triton==3.2.0", optional=True)
    return "tensor cores: used if the GPU has them"


def compiler() -> str:
    for name in (os.environ.get("CXX"), "c++", "g++", "clang++"):
        if name and shutil.which(name):
            return f"C++ compiler: {name}"
    raise Trouble("no C++ compiler: figures have no curve for torch.compile", "sudo apt install g++", optional=True)


def mpi() -> str:
    # Allow root and more ranks than cores: the last line is for Open MPI 4.1, the third for 5.
    settings = {
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
        "OMPI_MCA_rmaps_base_oversubscribe": "1",
    }
    command = ["mpirun", "-n", "2", sys.executable, "-m", "mpi4py", "-c", RANKS]
    ranks, library = run(command, timeout=20, env={**os.environ, **settings}).split(maxsplit=1)
    if ranks != "2":
        raise Trouble(
            f"mpirun started two separate programs with {ranks} rank each instead of two ranks: mpirun and mpi4py "
            "use different MPI installations",
            "remove the folder of the other MPI from PATH and LD_LIBRARY_PATH",
        )
    return f"MPI: 2 ranks, {library.split(',')[0]}"


def jupyter() -> str:
    _python(JUPYTER, JUPYTER_PREFER_ENV_PATH="1")
    return f"Jupyter: a kernel started, JupyterLab {metadata.version('jupyterlab')}"


def ipyparallel() -> str:
    return _python("import ipyparallel; print('ipyparallel', ipyparallel.__version__)")


def nbval() -> str:
    return _python("import nbval.plugin, importlib.metadata as m; print('nbval', m.version('nbval'))")


def disk() -> str:
    folder = tempfile.gettempdir()
    free = shutil.disk_usage(folder).free / 2**30
    if free < 1:
        raise Trouble(f"{free:.1f} GiB free in {folder}; the labs need 1 GiB", "free some space, or set TMPDIR")
    return f"disk: {free:.0f} GiB free for temporary files"


def shared_memory() -> str:
    folder = Path("/dev/shm")
    size = shutil.disk_usage(folder).total / 2**20 if folder.is_dir() else 0
    if size < 256:
        fix = "in a container: docker run --shm-size=1g"
        raise Trouble(f"/dev/shm has {size:.0f} MiB; MPI ranks need 256 MiB", fix)
    return f"shared memory: {size:.0f} MiB in /dev/shm"


CHECKS = [
    python, torch, triton, gpu, tensor_cores, compiler, mpi, jupyter, ipyparallel, nbval, disk, shared_memory,
]  # fmt: skip


def examine(check: Callable[[], str]) -> tuple[str, str]:
    """Return ('OK' | 'FAIL' | '--', the text) for one component. An unexpected exception counts as a failure too."""
    try:
        return "OK", check().strip()
    except Trouble as trouble:
        return "--" if trouble.optional else "FAIL", f"{trouble.wrong}. Fix: {trouble.fix}"
    except ProcessFailed as error:
        said = (error.output.strip().splitlines() or [error.what or f"status {error.returncode}"])[-1]
        return "FAIL", f"{check.__name__}: {said}. Fix: {SET_UP}"
    except Exception as error:
        return "FAIL", f"{check.__name__}: {error}. Fix: {SET_UP}"


def main() -> int:
    failed = 0
    for check in CHECKS:
        status, said = examine(check)
        failed += status == "FAIL"
        print(f"{f'[{status}]':<7}{said}", flush=True)
    print(f"{failed} to fix; start at the top." if failed else "All is well.")
    return 1 if failed else 0


def _python(source: str, **environment: str) -> str:
    root = Path(__file__).parents[2]
    return run([sys.executable, "-c", source], timeout=30, env={**os.environ, **environment}, cwd=root)


if __name__ == "__main__":
    sys.exit(main())
