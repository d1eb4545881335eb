"""Write values as text that leaves a jail, read them without pickle, and compare them with the reference's."""

from __future__ import annotations

import base64
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

MOST_VALUES = 2**22  # elements of one array, or parts of one value
MOST_DIMENSIONS = 16
TOLERANCES = {"float64": 1e-9, "float32": 1e-4, "float16": 4e-3, "bfloat16": 3e-2}  # of the largest expected element
_DTYPES = {str(dtype).removeprefix("torch."): dtype for dtype in (
    torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16,
    torch.float32, torch.float64,
)}  # fmt: skip


class NoValue(ValueError):
    """Says why a value cannot leave a jail, or why a text is no value."""


@dataclass(frozen=True)
class Near:
    """A number that is right if its relative difference from the reference's is at most `within`."""

    value: float
    within: float


def written(value: Any) -> Any:
    """Convert a value for JSON. NoValue names the type of one that cannot be converted."""
    try:
        return _written(value)
    except NoValue:
        raise
    except (ValueError, TypeError, RuntimeError, RecursionError) as error:
        raise NoValue(f"{type(error).__name__}: {error}") from None


def _written(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return {"float": value.hex()}
    if isinstance(value, Near):
        return {"near": _written(float(value.value)), "within": _written(float(value.within))}
    if isinstance(value, torch.Tensor | np.ndarray | np.generic):
        tensor = value.detach().cpu() if isinstance(value, torch.Tensor) else torch.from_numpy(np.array(value))
        return _tensor(tensor.contiguous())
    if isinstance(value, list | tuple):
        return [_written(part) for part in value]
    if isinstance(value, dict):
        return {"dict": [[_written(_key(key)), _written(part)] for key, part in value.items()]}
    raise NoValue(f"a {type(value).__name__} is no number, text, tensor or array, nor a list, tuple or dict of them")


def _tensor(tensor: torch.Tensor) -> dict[str, Any]:
    dtype = str(tensor.dtype).removeprefix("torch.")
    if dtype not in _DTYPES:
        raise NoValue(f"a tensor of {dtype}")
    if tensor.numel() > MOST_VALUES:
        raise NoValue(f"a tensor of {tensor.numel():,} elements")
    content = tensor.reshape(-1).view(torch.uint8).numpy().tobytes() if tensor.numel() else b""
    return {"dtype": dtype, "shape": list(tensor.shape), "bytes": base64.b64encode(content).decode()}


def read(text: Any) -> Any:
    """Return the value that `written` converted; arrays become tensors. NoValue for any other text."""
    try:
        return _read(text)
    except NoValue:
        raise
    except (ValueError, KeyError, TypeError, RuntimeError, RecursionError, OverflowError) as error:
        raise NoValue(f"{type(error).__name__}: {error}") from None


def _read(text: Any) -> Any:
    if text is None or isinstance(text, bool | int | str):
        return text
    if isinstance(text, list):
        return [_read(part) for part in text]
    if "float" in text:
        return float.fromhex(text["float"])
    if "near" in text:
        return Near(float.fromhex(text["near"]["float"]), float.fromhex(text["within"]["float"]))
    if "dict" in text:
        return {_key(_read(key)): _read(part) for key, part in text["dict"]}
    dtype, shape = _DTYPES[text["dtype"]], list(text["shape"])
    if len(shape) > MOST_DIMENSIONS or not all(type(length) is int for length in shape):
        raise NoValue("a shape is of whole numbers, a few")
    content = base64.b64decode(text["bytes"], validate=True)
    count = int(np.prod(shape, dtype=object)) if shape else 1
    if min(shape, default=0) < 0 or count > MOST_VALUES or len(content) != count * dtype.itemsize:
        raise NoValue(f"{len(content)} bytes for a tensor of shape {shape}")
    if not count:
        return torch.empty(shape, dtype=dtype)
    return torch.frombuffer(bytearray(content), dtype=dtype).reshape(shape)


def _key(key: Any) -> Any:
    """Make a key hashable: a list becomes a tuple, an array or tensor of one element a number."""
    if isinstance(key, np.generic | torch.Tensor):
        key = key.item()
    return tuple(_key(part) for part in key) if isinstance(key, list | tuple) else key


def difference(found: Any, expected: Any) -> str:
    """Say how two values that `read` returned differ, without revealing them; '' if they agree.

    Floating-point numbers may differ by the TOLERANCES of the coarser dtype. A list equals a tuple, and a tensor of one
    element equals its number.
    """
    if isinstance(expected, dict) and isinstance(found, dict):
        if found.keys() != expected.keys():
            return "other keys"
        return next((said for key in expected if (said := difference(found[key], expected[key]))), "")
    if isinstance(expected, list) and isinstance(found, list):
        if len(found) != len(expected):
            return "another number of values"  # how many may depend on the inputs, so it is not told
        return next((said for pair in zip(found, expected, strict=True) if (said := difference(*pair))), "")
    if isinstance(expected, Near) and isinstance(found, Near):
        apart = abs(found.value - expected.value)
        return "" if apart <= expected.within * abs(expected.value) else "other values"
    if isinstance(expected, int) and isinstance(found, int):
        return "" if found == expected else "other values"
    if _is_number(expected) and _is_number(found):
        return _of_tensors(_as_tensor(found), _as_tensor(expected))
    if isinstance(expected, dict | list | torch.Tensor) or isinstance(found, dict | list | torch.Tensor):
        return "" if type(found) is type(expected) else "another type"
    return "" if found == expected and isinstance(found, type(expected)) else "another value"


def _is_number(value: Any) -> bool:
    return isinstance(value, bool | int | float | torch.Tensor)


def _as_tensor(value: Any) -> torch.Tensor:
    if isinstance(value, torch.Tensor):
        return value
    if isinstance(value, int) and abs(value) >= 2**63:
        value = float(value) if abs(value) < 2**1023 else math.copysign(math.inf, value > 0 or -1)
    return torch.tensor(value, dtype=torch.float64 if isinstance(value, float) else None)


def _of_tensors(found: torch.Tensor, expected: torch.Tensor) -> str:
    if found.shape != expected.shape and not found.numel() == expected.numel() == 1:
        return "another shape"
    kinds = [str(x.dtype).removeprefix("torch.") for x in (found, expected) if x.dtype.is_floating_point]
    bound = max((TOLERANCES[kind] for kind in kinds), default=0.0)
    if not kinds:  # float64 does not hold all whole numbers
        return "" if torch.equal(found.long().reshape(-1), expected.long().reshape(-1)) else "other values"
    one, other = found.double().reshape(-1), expected.double().reshape(-1)
    finite = other.isfinite()
    if not torch.equal(one.isfinite(), finite) or not torch.equal(
        one[~finite].nan_to_num(0.5), other[~finite].nan_to_num(0.5)
    ):
        return "other values are not finite"
    largest = float(other[finite].abs().max()) if finite.any() else 0.0
    apart = float((one[finite] - other[finite]).abs().max()) if finite.any() else 0.0
    return "" if apart <= bound * largest else "other values"
