"""Data parallelism on torch.distributed: wrappers that average gradients, compression and ZeRO (labs 08 and 09)."""

from typing import TYPE_CHECKING

from labs_helpers.public import lazily

if TYPE_CHECKING:
    from labs_helpers.data_parallel.ddp.bucketed import BucketedDDP
    from labs_helpers.data_parallel.ddp.flat import FlatDDP
    from labs_helpers.data_parallel.ddp.naive import NaiveDDP
    from labs_helpers.data_parallel.ddp.overlapped import OverlappedDDP
    from labs_helpers.data_parallel.zero.clip import clip_gradients
    from labs_helpers.data_parallel.zero.stage1 import ZeRO1
    from labs_helpers.data_parallel.zero.stage2 import ZeRO2
    from labs_helpers.data_parallel.zero.stage3 import ZeRO3

__all__ = ["BucketedDDP", "FlatDDP", "NaiveDDP", "OverlappedDDP", "ZeRO1", "ZeRO2", "ZeRO3", "clip_gradients"]
__getattr__, __dir__ = lazily(
    __name__,
    {
        "BucketedDDP": "ddp.bucketed",
        "FlatDDP": "ddp.flat",
        "NaiveDDP": "ddp.naive",
        "OverlappedDDP": "ddp.overlapped",
        "ZeRO1": "zero.stage1",
        "ZeRO2": "zero.stage2",
        "ZeRO3": "zero.stage3",
        "clip_gradients": "zero.clip",
    },
)
