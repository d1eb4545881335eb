"""Compile matrix kernels for several chips, and report instructions, shared memory and registers.

The source of a portable kernel mentions no chip. The compiler chooses the instruction, and the configuration must fit.
"""

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
    """Return the compile report (see `compile.report.compile_report`) of each kernel for each target, in float16.

    kernels: name → function of (a, b, c, config) that starts a kernel; by default fused_matmul's portable kernel. Each
    target uses the configuration that fused_matmul chooses there. Raises ValueError for an unknown target or a function
    that starts no kernel, and CompileError, which names kernel and target, if a kernel does not compile.
    """
    targets = list(targets)
    return compile_report(
        Build(name, _launch(name, function, config_for(target)), target)
        for name, function in kernels.items()
        for target in targets
    )


def config_for(target: str) -> Config:
    """Return the configuration that `fused_matmul` chooses on `target` for large matrices in float16."""
    if target not in TARGETS:
        raise ValueError(f"target {target!r} is not one of {', '.join(TARGETS)}")
    return default_config(4096, 4096, 4096, torch.float16, target)


def _launch(name: str, function: Callable, config: Config) -> Launch:
    """Record the launch that `function` makes with `config`, without running it."""
    x = [torch.empty(512, 512, dtype=torch.float16, device=this_machine().device) for _ in range(3)]
    with record_launches(run=False) as launches:
        function(*x, config)
    if not launches:
        raise ValueError(f"{name} started no kernel")
    options = {"num_warps": config.num_warps, "num_stages": config.num_stages}
    return replace(launches[-1], options=options | launches[-1].options)
