"""What shows the placement of ranks, and what steers it: NCCL's variables and Open MPI's options."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas

SETTINGS = {
    # docs.nvidia.com/deeplearning/nccl/user-guide, "Environment Variables"
    "NCCL": {
        "NCCL_DEBUG=INFO": "shows its version, rings and trees, and by what way each two GPUs talk",
        "NCCL_DEBUG_SUBSYS=INIT,GRAPH": "with it: also how the topology was found and searched",
        "NCCL_TOPO_DUMP_FILE=topology.xml": "writes the topology that it found to this file",
        "NCCL_P2P_LEVEL=NVL": "how far apart GPUs may be to talk directly: LOC (never), NVL, PIX, PXB, PHB, SYS",
        "NCCL_SOCKET_IFNAME=eth0": "network interfaces whose names begin so; =eth0 this one, ^docker all others",
        "NCCL_IB_HCA=mlx5_0": "which InfiniBand or RoCE cards are used between machines",
    },
    # mpirun(1) of version 5
    "Open MPI": {
        "--display map": "shows which rank goes to which node, before anything starts",
        "--report-bindings": "shows the cores that each rank is bound to",
        "--map-by slot": "fills a node before the next: neighbouring ranks share one",
        "--map-by node": "a rank per node in turn: neighbouring ranks are on different nodes",
        "--map-by ppr:4:node": "four ranks on each node",
        "--bind-to core": "a rank stays on its core; none lets it move, as ranks with several threads need",
        "--mca btl_tcp_if_include eth0": "the network interfaces for messages over TCP",
    },
}  # → {setting: what it shows or steers}


def settings() -> pandas.DataFrame:
    """SETTINGS, a row per setting."""
    import pandas

    rows = [(library, *row) for library, of_library in SETTINGS.items() for row in of_library.items()]
    return pandas.DataFrame(rows, columns=["library", "setting", "what it shows or steers"])
