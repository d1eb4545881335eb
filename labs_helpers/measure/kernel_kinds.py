"""Classify a kernel's work by its name and by the operator that launched it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

PRODUCTS, ATTENTION, ELEMENTWISE, REDUCTIONS = "matrix products", "attention", "elementwise", "norms, softmax, sums"
OPTIMIZER, COPIES, COMMUNICATION, OTHER = "optimizer", "copies", "communication", "other"
KINDS = (PRODUCTS, ATTENTION, ELEMENTWISE, REDUCTIONS, OPTIMIZER, COPIES, COMMUNICATION, OTHER)

# The first pattern found in the name decides. Inductor's kernels list all that they fuse, so their beginning goes first
# (poi: pointwise; red and per: reductions; for: over a list of tensors; tem: a template). Then cuBLAS, CUTLASS, cuDNN,
# FlashAttention, this course's attention, PyTorch's own; and operators (aten::…), which a CPU's trace has for kernels.
PATTERNS = (
    (COMMUNICATION, r"^(nccl|rccl)|^c10d::"),
    (ELEMENTWISE, r"^triton_poi_"),
    (REDUCTIONS, r"^triton_(red|per)_"),
    (OPTIMIZER, r"^triton_for_|multi_tensor_apply|_foreach_|aten::_fused_(adam|sgd|adagrad)"),
    (ATTENTION, r"flash|fmha|sdpa|attention|attn|^hopper_(forward|backward)_kernel$"),
    (ATTENTION, r"^(delta|prepare|round|key_value_gradients|query_gradient)_kernel$"),
    (PRODUCTS, r"^triton_(tem|mm)_|nvjet|gemm|gemv|matmul|cublas|cutlass|xmma|splitkreduce|mkldnn"),
    (PRODUCTS, r"aten::(_scaled_|_grouped_|_int_)?(mm|bmm|addmm|baddbmm|addbmm|mv|dot|convolution)\b"),
    (COPIES, r"^mem(cpy|set)|copy|aten::(cat|clone|repeat|repeat_interleave)\b"),
    (REDUCTIONS, r"softmax|reduce|norm(?!al)|moments|nll_loss|scan|cumsum|cumprod"),
    (REDUCTIONS, r"aten::(sum|mean|amax|amin|max|min|prod|argmax|argmin|var|std|logsumexp|all|any)\b"),
    (OTHER, r"embedding|(?<!with_)index|gather|scatter|sort|topk|histogram|nonzero|multinomial|local_scalar|bincount"),
    (ELEMENTWISE, r"elementwise|triu_tril|^aten::"),
)
_COMPILED = [(kind, re.compile(pattern, re.IGNORECASE)) for kind, pattern in PATTERNS]
_WORK = ("kernel", "gpu_memcpy", "gpu_memset")


def kind_of(name: str, operator: str = "") -> str:
    """Return the kind (one of KINDS) of a kernel with this name. If the name says nothing, the `operator` that
    launched it decides."""
    for text in (name, operator):
        for kind, pattern in _COMPILED:
            if pattern.search(text):
                return kind
    return OTHER


def kinds(events: Iterable[dict[str, Any]]) -> list[tuple[dict[str, Any], str]]:
    """Return each piece of the GPU's work in a trace with its kind. Work that an optimizer's step launched is
    'optimizer', whatever its name: torch.optim records a range around each step."""
    events = [event for event in events if event["ph"] == "X"]
    operators = {event["args"].get("External id"): event for event in events if event["cat"] == "cpu_op"}
    steps = [
        (event["tid"], event["ts"], event["ts"] + event["dur"])
        for event in events
        if event["cat"] == "user_annotation" and event["name"].startswith("Optimizer.step#")
    ]
    found = []
    for event in events:
        if event["cat"] not in _WORK:
            continue
        operator = operators.get(event["args"].get("External id"))
        kind = kind_of(event["name"], operator["name"] if operator else "")
        if operator and any(tid == operator["tid"] and a <= operator["ts"] < b for tid, a, b in steps):
            kind = OPTIMIZER
        found.append((event, kind))
    return found


def by_kind(events: Iterable[dict[str, Any]]) -> dict[str, float]:
    """Return {kind: µs} of the GPU's work in a trace, the most expensive kind first. Work that overlaps on two
    streams counts twice."""
    total: dict[str, float] = {}
    for event, kind in kinds(events):
        total[kind] = total.get(kind, 0.0) + event["dur"]
    return dict(sorted(total.items(), key=lambda item: -item[1]))
