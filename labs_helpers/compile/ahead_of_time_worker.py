"""Compile jobs in a process without TRITON_INTERPRET; `ahead_of_time.py` runs this file as a script.

It imports neither this course nor torch, so that it works with any Triton from 3.2 on.
"""

import importlib.util
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from unittest import mock

import triton
import triton.compiler.compiler
import triton.runtime.cache
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

# The instructions of a matrix product, by family of chip.
TENSOR_CORE = r"\b(wgmma\.mma_async|tcgen05\.mma|mma\.sync|v_mfma_\w+|v_wmma_\w+)"


def know_triton_by_its_date() -> None:
    """Identify Triton by its library's version, size and date. Its cache keys contain a hash of all of Triton, and
    reading those hundreds of megabytes takes more than half of this process's time."""
    library = next(Path(triton.__file__).parent.glob("_C/libtriton*.so"), None)
    if library is not None:
        known = f"{triton.__version__} {library.stat().st_size} {library.stat().st_mtime_ns}"
        for module in (triton.runtime.cache, triton.compiler.compiler):  # the latter in Triton 3.2
            if hasattr(module, "triton_key"):
                module.triton_key = lambda: known


def gpu_target(name: str) -> GPUTarget:
    if name.startswith("sm_"):
        return GPUTarget("cuda", int(name[3:]), 32)
    return GPUTarget("hip", name, 64)


def ast_source(kernel, job: dict):
    names = list(job["signature"])
    aligned = {(names.index(name),): [["tt.divisibility", 16]] for name in job["aligned"]}
    try:
        return ASTSource(kernel, signature=job["signature"], constexprs=job["constexprs"], attrs=aligned)
    except TypeError:  # Triton 3.2
        from triton.backends.compiler import AttrsDescriptor

        properties = {"tt.divisibility": [index for (index,) in aligned], "tt.equal_to": []}
        attrs = AttrsDescriptor.from_dict({"arg_properties": properties, "cls": "AttrsDescriptor"})
        signature = {k: v for k, v in job["signature"].items() if v != "constexpr"}
        return ASTSource(kernel, signature=signature, constants=job["constexprs"], attrs=attrs)


def resources(cubin: bytes) -> tuple:
    """Return (registers per thread, spilled bytes) of a CUDA binary; (None, None) without cuobjdump."""
    tool = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
    if not tool.exists():
        return None, None
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        text = subprocess.run(
            [tool, "--dump-resource-usage", file.name], capture_output=True, text=True, timeout=30
        ).stdout
    found = re.search(r"REG:(\d+) STACK:(\d+)", text)
    return (int(found[1]), int(found[2])) if found else (None, None)


class Enough(Exception):
    """Stop the compilation after a stage; carries that stage's text and the compiler's notes so far."""


def compile_until(stage: str, source: ASTSource, target: GPUTarget, options: dict) -> tuple[dict, dict]:
    """Return (stage → its text or binary, the compiler's notes). stage: the last one to run, such as "ptx"; "" runs
    all."""
    backend = type(triton.compiler.compiler.make_backend(target))
    add_all = backend.add_stages

    def add_stages(self, stages, *rest):
        add_all(self, stages, *rest)
        if last := stages.get(stage):

            def end(module, metadata):
                raise Enough(str(last(module, metadata)), metadata)

            stages[stage] = end

    with mock.patch.object(backend, "add_stages", add_stages):
        try:
            compiled = triton.compile(source, target=target, options=options)
        except Enough as enough:
            text, metadata = enough.args
            return {stage: text}, metadata
    texts = {stage: compiled.asm[stage]} if stage else compiled.asm  # Triton caches compiled kernels
    return texts, compiled.metadata._asdict()


def compile_job(job: dict, folder: str) -> dict:
    path = Path(folder, f"{job['kernel']}_{abs(hash(json.dumps(job, sort_keys=True)))}.py")
    path.write_text(job["source"])
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    kernel = getattr(module, job["kernel"])
    target, cuda = gpu_target(job["target"]), job["target"].startswith("sm_")
    texts, metadata = compile_until(job["until"], ast_source(kernel, job), target, job["options"])
    assembly = texts[job["until"] or ("ptx" if cuda else "amdgcn")]
    binary = texts.get("cubin" if cuda else "hsaco", b"")
    found: dict = {}
    for name in re.findall(TENSOR_CORE, assembly):
        found[name] = found.get(name, 0) + 1
    # wgmma.mma_async.sync.aligned.m64n128k16.f16.f16.f16 and mma.sync.….f16.f16.f16.f16: the first type is D's.
    half = re.search(r"(wgmma\.mma_async|mma\.sync)[\w.:]*\.m\d+n\d+k\d+(\.row\.col)?\.f16\.", assembly)
    registers, spills = (resources(binary) if cuda else amd_resources(assembly)) if binary else (None, None)
    return {
        "target": job["target"],
        "tensor_core": found,
        "float16_accumulators": bool(half),
        "shared": metadata.get("shared", 0),
        "registers": registers,
        "spills": spills,
        "binary": len(binary),
        "num_warps": metadata["num_warps"],
        "assembly": assembly,
        "triton": triton.__version__,
    }


def amd_resources(assembly: str) -> tuple:
    registers = re.search(r"\.vgpr_count:\s+(\d+)", assembly)
    spills = re.search(r"\.vgpr_spill_count:\s+(\d+)", assembly)
    return (int(registers[1]) if registers else None, 4 * int(spills[1]) if spills else None)


def main(order: str, answer: str) -> None:
    know_triton_by_its_date()
    results = []
    with tempfile.TemporaryDirectory() as folder:
        for job in json.loads(Path(order).read_text()):
            try:
                results.append(compile_job(job, folder))
            except Exception as error:  # the compiler's refusal is the answer
                results.append({"error": f"{type(error).__name__}: {error}"})
    Path(answer).write_text(json.dumps(results))


if __name__ == "__main__":
    main(*sys.argv[1:])
