import os
import re
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from labs_helpers.measure import machine
from labs_helpers.measure.machine import WHERE_TRITON_RUNS, Machine, TritonMissing, this_machine

ROOT = Path(__file__).resolve().parents[2]

CPU = Machine(
    name="Some Processor",
    device="cpu",
    architecture=None,
    capability=None,
    interpreted=True,
    cores=2,
    memory_bytes=2**33,
    python="3.12.1",
    torch="2.13.0",
    triton="3.7.1",
    cuda=None,
    driver=None,
)
H200 = replace(
    CPU,
    name="NVIDIA H200",
    device="cuda",
    architecture="sm_90",
    capability=(9, 0),
    interpreted=False,
    cuda="13.0",
)
A100 = replace(H200, name="NVIDIA A100-SXM4-80GB", architecture="sm_80", capability=(8, 0))
T4 = replace(H200, name="Tesla T4", architecture="sm_75", capability=(7, 5))
PASCAL = replace(H200, name="Tesla P100", architecture="sm_60", capability=(6, 0))
MI300X = replace(H200, name="AMD Instinct MI300X", architecture="gfx942", capability=None, cuda="HIP 6.4")


def fresh(code, *flags, **environment):
    """Run code in a new Python without a GPU; its stdout, or the last line of its traceback."""
    clean = {k: v for k, v in os.environ.items() if k not in ("TRITON_INTERPRET", "LABS_DEVICE")}
    setup = f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
    answer = subprocess.run(
        [sys.executable, *flags, "-c", setup + textwrap.dedent(code)],
        env=clean | {"LABS_DEVICE": "cpu"} | environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return answer.stdout.strip() if answer.returncode == 0 else answer.stderr.strip().splitlines()[-1]


def test_without_a_gpu_the_interpreter_is_chosen_before_anything_heavy_is_imported():
    out = fresh("""
        import os
        from labs_helpers.measure.machine import prepare_triton
        print(prepare_triton(), prepare_triton(), os.environ["TRITON_INTERPRET"])
        from labs_helpers.measure import numpy_index
        print(sorted(({"torch"} if numpy_index.is_needed() else {"triton", "torch"}) & set(sys.modules)))
        import triton.language
        print(prepare_triton())
    """)
    assert out.splitlines() == ["True True 1", "[]", "True"]


def test_triton_imported_too_early_in_compiled_mode_is_an_error_that_says_what_to_do():
    out = fresh("""
        import triton.language
        from labs_helpers.measure.machine import prepare_triton
        prepare_triton()
    """)
    assert out.startswith("RuntimeError") and "restart the kernel" in out and "set-up cell first" in out


def test_with_a_gpu_the_student_decides():
    out = fresh("""
        import os
        from labs_helpers.measure import machine
        machine.has_gpu = lambda: True
        print(machine.prepare_triton(), "TRITON_INTERPRET" in os.environ)
        os.environ["TRITON_INTERPRET"] = "true"
        print(machine.prepare_triton(), os.environ["TRITON_INTERPRET"], machine.this_machine().device)
        import triton.language
        del os.environ["TRITON_INTERPRET"]
        machine.prepare_triton()
    """)
    assert out.startswith("RuntimeError") and "interpreted" in out and "compiled" in out


def test_with_a_gpu_and_the_interpreter_asked_for_the_device_is_the_processor():
    out = fresh("""
        import os
        from labs_helpers.measure import machine
        machine.has_gpu = lambda: True
        print(machine.prepare_triton(), "TRITON_INTERPRET" in os.environ)
        os.environ["TRITON_INTERPRET"] = "true"
        print(machine.prepare_triton(), os.environ["TRITON_INTERPRET"], machine.this_machine().device)
    """)
    assert out.splitlines() == ["False False", "True 1 cpu"]


def test_without_triton_the_message_says_where_it_runs():
    # -S leaves out site-packages, where Triton is.
    out = fresh("from labs_helpers.measure.machine import prepare_triton; prepare_triton()", "-S")
    assert TritonMissing(WHERE_TRITON_RUNS)._render_traceback_() == [f"✗ {WHERE_TRITON_RUNS}"]
    assert "TritonMissing" in out
    assert all(word in out for word in ("Linux", "aarch64", "macOS", "devcontainer", "WSL"))


def test_an_unknown_device_is_named():
    out = fresh("from labs_helpers.measure.machine import has_gpu; has_gpu()", LABS_DEVICE="tpu")
    assert out.startswith("ValueError") and "'tpu'" in out and "'cpu'" in out


@pytest.mark.parametrize(
    "gpu, dtype, bfloat16",
    [
        (CPU, torch.float32, False),
        (PASCAL, torch.float32, False),
        (T4, torch.float16, False),
        (A100, torch.float16, True),
        (H200, torch.float16, True),
        (MI300X, torch.float16, True),
        (replace(CPU, name="a processor beside an H200"), torch.float32, False),
    ],
)
def test_dtypes(gpu, dtype, bfloat16):
    assert gpu.dtype is dtype
    assert gpu.supports_bfloat16 is bfloat16


@pytest.mark.parametrize(
    "triton, warned",
    [
        ("3.1.0", False),
        ("3.2.0", False),
        ("3.3.0", True),
        ("3.6.0", True),
        ("3.10.0+git1", True),
        (None, False),
    ],
)
def test_only_turing_with_a_newer_triton_is_warned(triton, warned):
    message = replace(T4, triton=triton).tensor_core_warning
    assert (message is not None) == warned
    if warned:
        assert "pip install triton==3.2.0" in message and triton in message
    assert all(replace(m, triton=triton).tensor_core_warning is None for m in (CPU, A100, H200, MI300X))


def test_in_words():
    assert str(H200) == "NVIDIA H200, compute capability 9.0, compiled kernels, torch 2.13.0, Triton 3.7.1"
    assert str(MI300X).startswith("AMD Instinct MI300X, gfx942, compiled kernels")
    assert str(CPU).startswith("Some Processor, 2 cores, kernels in Triton's interpreter")
    assert "1 core," in str(replace(CPU, cores=1)) and "no Triton" in str(replace(CPU, triton=None))
    assert (H200.label, CPU.label) == ("NVIDIA H200", "2-core CPU (interpreter)")


def test_this_machine_without_a_gpu():
    out = fresh("""
        import os
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        from labs_helpers.measure.machine import this_machine
        m = this_machine()
        print(m.device, m.interpreted, m.cores, m.capability, m.cuda, m.driver, sep="|", end="|")
        print(m.label, m.memory_bytes, sep="|")
    """)
    *values, memory = out.split("|")
    assert values == ["cpu", "True", "1", "None", "None", "None", "1-core CPU (interpreter)"]
    kilobytes = re.search(r"MemTotal:\s+(\d+)", Path("/proc/meminfo").read_text())
    assert int(memory) == int(kilobytes[1]) * 1024
    assert this_machine() is this_machine()


@pytest.mark.skipif(machine.interpreting(), reason="needs a GPU and compiled kernels")
def test_this_machine_with_a_gpu():
    m = this_machine()
    assert m.device == "cuda" and not m.interpreted and m.name == torch.cuda.get_device_name()
    if torch.version.hip is None:
        assert m.capability == torch.cuda.get_device_capability()
        assert m.architecture == "sm_{}{}".format(*m.capability) and m.driver[0].isdigit()


def test_measure_and_draw_import_without_ipython_and_the_light_modules_without_torch():
    out = fresh("""
        import importlib, importlib.abc, pkgutil

        class Blocked(importlib.abc.MetaPathFinder):
            def find_spec(self, name, path=None, target=None):
                if name.split(".")[0] in ("IPython", "ipykernel", "jupyter_client", "nbformat"):
                    raise ModuleNotFoundError(f"{name} is not here")

        sys.meta_path.insert(0, Blocked())
        from labs_helpers import draw, measure
        for name in ("machine", "timing", "results", "datasheet", "roofs", "roofline"):
            importlib.import_module(f"labs_helpers.measure.{name}")
        print(sorted({"torch", "triton", "pandas", "mpi4py"} & set(sys.modules)))
        from labs_helpers.draw import figures
        fig, ax = figures.new()
        figures.finish(fig, "nothing_to_show_it_in")
        for package in (draw, measure):
            for module in pkgutil.iter_modules(package.__path__):
                importlib.import_module(f"{package.__name__}.{module.name}")
        print("all")
    """)
    assert out.splitlines() == ["[]", "all"]
