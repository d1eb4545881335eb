"""Record the PyTorch functions that an answer calls. Beside a kernel, it may only allocate and inspect tensors."""

from __future__ import annotations

import sys
from contextlib import nullcontext

from torch.overrides import TorchFunctionMode, resolve_name

from labs_helpers.compile.source import plain
from labs_helpers.course.verdict.errors import files_of

# Functions that allocate an output or inspect a tensor; all others compute, copy or fill.
ALLOWED = set(
    "empty empty_like empty_strided new_empty zeros zeros_like new_zeros full full_like new_full size stride dim numel "
    "nelement element_size data_ptr storage_offset is_contiguous is_floating_point __get__ __len__ ndimension "
    "untyped_storage get_device view reshape t transpose permute expand expand_as unsqueeze squeeze flatten detach "
    "broadcast_to as_strided view_as finfo promote_types __repr__ __format__ __hash__ device".split()
)


class ByPyTorch(TorchFunctionMode):
    """Inside the block, `calls` collects the PyTorch functions outside ALLOWED that a line of the answer, or of
    another cell of its notebook, calls. Calls that Triton and the guards make on its behalf do not count."""

    def __init__(self, student):
        super().__init__()
        # The calls of an answer in another process, which reports them at the end.
        self._alone = getattr(student, "kernels_alone", lambda: nullcontext([]))()
        self.files, self.module = files_of(student), getattr(plain(student), "__globals__", None)
        self.calls: list[str] = []

    def __torch_function__(self, function, types, args=(), kwargs=None):
        name = getattr(function, "__name__", "")
        if name not in ALLOWED and self._from_an_answer():
            self.calls.append((resolve_name(function) or name).removeprefix("torch.Tensor."))
        return function(*args, **(kwargs or {}))

    def __enter__(self):
        self._there = self._alone.__enter__()
        return super().__enter__()

    def __exit__(self, *raised):
        super().__exit__(*raised)
        self._alone.__exit__(*raised)
        self.calls += self._there

    def _from_an_answer(self) -> bool:
        """Tell whether the innermost frame outside PyTorch belongs to the answer's files or module."""
        frame = sys._getframe(2)
        while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "torch":
            frame = frame.f_back
        return frame is not None and (frame.f_code.co_filename in self.files or frame.f_globals is self.module)
