"""One interface to MPI, torch.distributed and practice ranks: collectives, messages, a mesh, buckets."""

from typing import TYPE_CHECKING

from labs_helpers.public import lazily

if TYPE_CHECKING:
    from labs_helpers.communication.interface import Communication, connect
    from labs_helpers.communication.mesh import Mesh

__all__ = ["Communication", "Mesh", "connect"]
__getattr__, __dir__ = lazily(__name__, {"Communication": "interface", "Mesh": "mesh", "connect": "interface"})
