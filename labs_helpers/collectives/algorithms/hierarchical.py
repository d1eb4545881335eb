"""All-reduce over nodes: reduce within each node, all-reduce between the nodes' leaders, distribute within each node.

Within a node the data goes through shared memory, and between nodes the leaders run Rabenseifner's algorithm with
messages. So a node sends 2(M − 1)/M·n elements for M nodes, a power of two, however many ranks it has. n/B blocks of B
elements (segment.py) make n/B·2·log₂M messages.
"""

from labs_helpers.collectives.algorithms import rabenseifner
from labs_helpers.collectives.nodes import nodes_of
from labs_helpers.collectives.operations import is_commutative, reduce_rows
from labs_helpers.collectives.shared_memory.allreduce import show_slices
from labs_helpers.collectives.shared_memory.segment import segment_of


def allreduce(comm, source, target, op) -> None:
    """All-reduce source: (n,) into target: (n,) of the same dtype; both may be the same array.

    Raises ValueError for an op that is not commutative if a node's ranks are not consecutive.
    """
    nodes = nodes_of(comm)
    if not (nodes.in_order or is_commutative(op)):
        raise ValueError(
            "op is not commutative, and algorithm 'hierarchical' changes the order of operands here: "
            "the ranks of a node are not consecutive"
        )
    segment = segment_of(nodes.node)
    for part in segment.parts(target):
        _allreduce_block(segment, nodes.leaders, source[part], target[part], op)


def _allreduce_block(segment, leaders, source, target, op) -> None:
    own, slices, mine, result, _ = segment.next_block(show_slices, target.dtype, target.shape)
    own[...] = source
    segment.barrier()
    if mine.size:
        reduce_rows(op, slices, mine)
    segment.barrier()
    if leaders is not None:
        rabenseifner.allreduce(leaders, result, result, op)
    segment.barrier()
    target[...] = result
