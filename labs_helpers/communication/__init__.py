"""One interface to MPI, torch.distributed and practice ranks: collectives, messages, buckets, gradients' means."""

from typing import TYPE_CHECKING

from labs_helpers.public import lazily

if TYPE_CHECKING:
    from labs_helpers.communication.interface import Communication, connect

__all__ = ["Communication", "connect"]
__getattr__, __dir__ = lazily(__name__, {"Communication": "interface", "connect": "interface"})
