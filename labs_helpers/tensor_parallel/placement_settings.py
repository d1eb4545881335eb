"""Settings of NCCL and Open MPI that show or control the placement of ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas

SETTINGS = {
    # docs.nvidia.com/deeplearning/nccl/user-guide, "Environment Variables"
    "NCCL": {
        "NCCL_DEBUG=INFO": "shows its version, rings and trees, and the path between each pair of GPUs",
        "NCCL_DEBUG_SUBSYS=INIT,GRAPH": "adds how NCCL found and searched the topology",
        "NCCL_TOPO_DUMP_FILE=topology.xml": "writes the detected topology to this file",
        "NCCL_P2P_LEVEL=NVL": "the longest path for direct GPU-to-GPU copies: LOC (never), NVL, PIX, PXB, PHB, SYS",
        "NCCL_SOCKET_IFNAME=eth0": "uses interfaces with this prefix; =eth0 for exactly this one, ^docker to exclude",
        "NCCL_IB_HCA=mlx5_0": "selects the InfiniBand or RoCE cards between machines",
    },
    # mpirun(1) of version 5
    "Open MPI": {
        "--display map": "shows the node of each rank before anything starts",
        "--report-bindings": "shows the cores to which each rank is bound",
        "--map-by slot": "fills one node before the next, so neighboring ranks share a node",
        "--map-by node": "assigns ranks to the nodes in turn, so neighboring ranks are on different nodes",
        "--map-by ppr:4:node": "puts four ranks on each node",
        "--bind-to core": "binds a rank to one core; use none for ranks with several threads",
        "--mca btl_tcp_if_include eth0": "selects the network interfaces for TCP",
    },
}  # library → {setting: effect}


def settings() -> pandas.DataFrame:
    """Return SETTINGS as a table with one row per setting."""
    import pandas

    rows = [(library, *row) for library, of_library in SETTINGS.items() for row in of_library.items()]
    return pandas.DataFrame(rows, columns=["library", "setting", "effect"])
