"""The compile report of matrix kernels: a portable kernel says nothing of the chip it runs on, so one source serves
all of them; the compiler chooses the instruction, and the configuration has to fit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

import torch

from labs_helpers.compile.ahead_of_time import TARGETS
from labs_helpers.compile.launches import Launch, record_launches
from labs_helpers.compile.report import Build, compile_report
from labs_helpers.gemm.configs import Config, default_config
from labs_helpers.gemm.kernels.portable import portable_matmul
from labs_helpers.measure.machine import this_machine

FUSED = {"fused_matmul": portable_matmul}


def compile_everywhere(kernels: Mapping[str, Callable] = FUSED, targets: Iterable[str] = tuple(TARGETS)):
    """The compile report (see `compile.report.compile_report`) of each kernel for each target, in float16.

    kernels: name → function of (a, b, c, config) that starts one; by default fused_matmul's portable one. Each target
    gets the configuration that fused_matmul takes there. ValueError for an unknown target, or a function that starts no
    kernel; CompileError, naming kernel and target, where one does not build.
    """
    targets = list(targets)
    return compile_report(
        Build(name, _launch(name, function, config_for(target)), target)
        for name, function in kernels.items()
        for target in targets
    )


def config_for(target: str) -> Config:
    """The configuration that `fused_matmul` takes on `target` for large matrices in float16."""
    if target not in TARGETS:
        raise ValueError(f"target {target!r} is not one of {', '.join(TARGETS)}")
    return default_config(4096, 4096, 4096, torch.float16, target)


def _launch(name: str, function: Callable, config: Config) -> Launch:
    """The launch `function` makes with `config`, which is recorded and not run."""
    x = [torch.empty(512, 512, dtype=torch.float16, device=this_machine().device) for _ in range(3)]
    with record_launches(run=False) as launches:
        function(*x, config)
    if not launches:
        raise ValueError(f"{name} started no kernel")
    options = {"num_warps": config.num_warps, "num_stages": config.num_stages}
    return replace(launches[-1], options=options | launches[-1].options)
