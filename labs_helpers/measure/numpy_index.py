"""Make Triton 3.6's interpreter work with NumPy 2.4 and newer.

That interpreter converts a one-element array to an index with int(), which NumPy 2.4 refuses. Triton 3.7 squeezes the
array first; this module patches that line into 3.6.
"""

import importlib.metadata


def is_needed() -> bool:
    """Return True for Triton before 3.7 with NumPy 2.4 or newer."""
    triton, numpy = (_version(name) for name in ("triton", "numpy"))
    return triton is not None and triton < (3, 7) and numpy >= (2, 4)


def mend() -> None:
    """Patch the interpreter. This imports Triton, so TRITON_INTERPRET must be set before. Repeating it is harmless."""
    from triton.runtime import interpreter

    original = interpreter._patch_lang_tensor
    if getattr(original, "mended", False):
        return

    def patch_lang_tensor(tensor, scope):
        original(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.squeeze()))

    patch_lang_tensor.mended = True
    interpreter._patch_lang_tensor = patch_lang_tensor


def _version(package: str):
    try:
        return tuple(int(part) for part in importlib.metadata.version(package).split(".")[:2])
    except importlib.metadata.PackageNotFoundError:
        return None
