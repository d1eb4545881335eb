"""Measure what quantization costs the byte model, in nats per byte: scheme × method, with seeds.

    python -m labs_helpers.quantization.quality_study
    python -m labs_helpers.quantization.quality_study --seeds 3 --steps 100

The products run in float32, so that a difference comes from the rounding of weights and activations alone. The same
command continues a study that was interrupted. A GPU reads more of the text, with more seeds, and trains for longer.
"""

from __future__ import annotations

import copy
import itertools
import time
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor, nn

from labs_helpers.launch import program
from labs_helpers.measure.machine import this_machine
from labs_helpers.measure.options import count
from labs_helpers.measure.records import frame
from labs_helpers.measure.study import Study, as_text
from labs_helpers.quantization.awq import protect
from labs_helpers.quantization.byte_model import SHIPPED, load_byte_model
from labs_helpers.quantization.outliers import make_outliers, outlier_ratio
from labs_helpers.quantization.quality import difference, losses
from labs_helpers.quantization.simulation import Rounding, fp8_per_token, int8_per_token, simulate
from labs_helpers.quantization.smoothquant import smooth
from labs_helpers.quantization.straight_through import quantization_aware
from labs_helpers.quantization.weights import Fp8Weight, Int4Weight, Int8Weight
from labs_helpers.transformer.model import Transformer
from labs_helpers.transformer.text import batches
from labs_helpers.transformer.train import train

if TYPE_CHECKING:
    import pandas

STUDY = Study("quantization-quality", "python -m labs_helpers.quantization.quality_study")
load = STUDY.load

AS_TRAINED, WITH_OUTLIERS = "as trained", "with outliers"
NEAREST, SMOOTHQUANT, AWQ = "round to nearest", "SmoothQuant", "AWQ"
CONTINUED, AWARE = "trained further", "quantization-aware training"
METHODS = {"w8a8": SMOOTHQUANT} | {f"int4-{group}": AWQ for group in (32, 64, 128)}  # besides rounding to nearest
CALIBRATION = 8, 256  # sequences of the training text, and bytes in each
TRAINED_SCHEME = "int4-128"
DEFAULTS = {
    "cpu": {"windows": 32, "length": 128, "seeds": 1, "steps": 0},
    "cuda": {"windows": 512, "length": 1024, "seeds": 3, "steps": 200},
}


class Scheme(NamedTuple):
    weight: Callable[[Tensor], Any]  # (N, K) → a quantized weight
    activations: Rounding | None = None

    def rounding(self, w: Tensor) -> Tensor:
        return self.weight(w).dequantize(w.dtype)


SCHEMES = {
    "int8": Scheme(Int8Weight.quantize),
    "fp8": Scheme(Fp8Weight.quantize),
    "int4-32": Scheme(partial(Int4Weight.quantize, group=32)),
    "int4-64": Scheme(partial(Int4Weight.quantize, group=64)),
    "int4-128": Scheme(partial(Int4Weight.quantize, group=128)),
    "w8a8": Scheme(Int8Weight.quantize, int8_per_token),
    "fp8 × fp8": Scheme(Fp8Weight.quantize, fp8_per_token),
}


class Case(NamedTuple):
    """What one record measures. seed: of outliers, calibration data and training; rounding to nearest has none."""

    model: str
    scheme: str  # of SCHEMES; "bf16" for the weights as they are
    method: str
    seed: int


def cases(seeds: int, trained: bool) -> list[Case]:
    """Return all cases. trained: also those that train the model further."""
    found = [Case(AS_TRAINED, "bf16", NEAREST, 0), *(Case(AS_TRAINED, scheme, NEAREST, 0) for scheme in SCHEMES)]
    found += [Case(AS_TRAINED, *pair, seed) for pair in METHODS.items() for seed in range(seeds)]
    for seed in range(seeds):
        found += [Case(WITH_OUTLIERS, scheme, NEAREST, seed) for scheme in ("bf16", *SCHEMES)]
        found += [Case(WITH_OUTLIERS, *pair, seed) for pair in METHODS.items()]
    methods, schemes = (CONTINUED, AWARE), ("bf16", TRAINED_SCHEME)
    further = [Case(AS_TRAINED, *pair, seed) for seed in range(seeds) for pair in itertools.product(schemes, methods)]
    return found + further * trained


class Bench:
    """The byte model on this machine's device, and the loss of its variants. steps: of further training."""

    def __init__(self, weights: Path, windows: int, length: int, steps: int, lr: float = 1e-4) -> None:
        self.device, self.steps, self.lr = this_machine().device, steps, lr
        self.original = load_byte_model(weights, self.device, torch.float32)
        self.losses = partial(losses, windows=windows, length=length)
        self.baseline = self.losses(self.original)
        self._trained = cache(self._train)

    def measure(self, case: Case) -> list[dict[str, Any]]:
        """Return the record of a case."""
        began = time.perf_counter()
        tokens = next(batches("train", *CALIBRATION, case.seed))[0].to(self.device)
        trained = case.method in (CONTINUED, AWARE)
        model = copy.deepcopy(self._trained(case.method, case.seed) if trained else self.original)
        if case.model == WITH_OUTLIERS:
            make_outliers(model, seed=case.seed)
        ratio = outlier_ratio(model, tokens)
        size = 2 * sum(parameter.numel() for parameter in model.parameters())  # in bfloat16
        if scheme := SCHEMES.get(case.scheme):
            if case.method == SMOOTHQUANT:
                smooth(model, tokens)
            elif case.method == AWQ:
                protect(model, tokens, scheme.rounding)
            linears = [module.weight for module in model.modules() if isinstance(module, nn.Linear)]
            size += sum(scheme.weight(weight).nbytes - 2 * weight.numel() for weight in linears)
            simulate(model, scheme.rounding, scheme.activations)
        found = self.losses(model)
        worse = difference(found, self.baseline)
        return [
            {
                "study": STUDY.name,
                "kind": "quality",
                "nats_per_byte": found.mean().item(),
                "difference": worse.mean,
                "difference_error": worse.error,
                "resident_bytes": size,
                "outlier_ratio": ratio,
                "steps": self.steps if trained else None,
                "seconds": time.perf_counter() - began,
            }
        ]

    def _train(self, method: str, seed: int) -> Transformer:
        model = copy.deepcopy(self.original)
        setting: dict[str, Any] = {"batch": 16, "length": 256, "lr": self.lr, "seed": seed}
        if method == AWARE:
            with quantization_aware(model, SCHEMES[TRAINED_SCHEME].rounding):
                train(model, self.steps, **setting)
        else:
            train(model, self.steps, **setting)
        return model.eval()


def table(rows: pandas.DataFrame) -> pandas.DataFrame:
    """Return one row per model, scheme and method: the loss, how much worse it is than the original's, the range over
    the seeds, the standard error over parts of the text, and the resident bytes."""
    import pandas

    found = rows.groupby(["model", "scheme", "method"], sort=False)
    columns = {
        "seeds": found["seed"].nunique(),
        "nats/byte": found["nats_per_byte"].mean(),
        "worse by": found["difference"].mean(),
        "least": found["difference"].min(),
        "most": found["difference"].max(),
        "± of parts": found["difference_error"].mean(),
        "MB": found["resident_bytes"].first() / 1e6,
    }
    return pandas.DataFrame(columns).reset_index()


def main(arguments: list[str] | None = None) -> None:
    parser = STUDY.parser(__doc__)
    parser.add_argument("--weights", type=Path, default=SHIPPED, help="default: the byte model that is shipped")
    defaults = DEFAULTS[this_machine().device]
    for option, kind, meaning in (
        ("seeds", count, "of outliers, calibration data and training"),
        ("windows", count, "of the validation text, a multiple of 8"),
        ("length", count, "bytes of each window"),
        ("steps", int, "of further training, 4,096 bytes each; 0 leaves it out"),
    ):
        parser.add_argument(f"--{option}", type=kind, default=defaults[option], help=f"{meaning}; default: %(default)s")
    given = parser.parse_args(arguments)
    bench = Bench(given.weights, given.windows, given.length, given.steps)
    print(f"original: {bench.baseline.mean():.4f} nats per byte, {bench.baseline.std():.3f} between parts", flush=True)
    items = [(tuple(case), case) for case in cases(given.seeds, trained=given.steps > 0)]
    same = {"windows": given.windows, "length": given.length}
    new = STUDY.go_on(items, Case._fields, bench.measure, given.out, same=same, here=("machine", "commit", "torch"))
    if new:
        print(f"\n{as_text(table(frame(new)))}")


if __name__ == "__main__":
    program.run(main)
