"""Which blocks of a paged cache belong to whom: references, sharing of equal prefixes, eviction. No tensors here.

A block holds the keys and values of `size` positions in all layers. A full block whose tokens are known is found again
by its digest, which covers its tokens and the digest of the block before it, and so all tokens up to its end. A request
that begins with the same tokens shares such blocks. (Kwon et al., Efficient memory management for large language model
serving with PagedAttention, 2023.)
"""

from __future__ import annotations

import hashlib
from array import array
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

SCRATCH = 0  # a block that belongs to nobody: padding reads and writes it


@dataclass
class Table:
    """The blocks of one request, in order of its positions. digests: those of its first blocks, which `commit` made."""

    blocks: list[int] = field(default_factory=list)
    digests: list[bytes] = field(default_factory=list)


@dataclass(frozen=True)
class Admission:
    """A table with a block for every token. computed: the positions that the shared blocks hold. copy: (from, to) if
    the last shared block has to be copied before the next pass writes into it."""

    table: Table
    computed: int
    copy: tuple[int, int] | None


class Blocks:
    """`count` blocks with the numbers 1 to count; SCRATCH is a further block of the cache.

    A block is free while nobody refers to it. Free blocks keep their contents, and can be shared again, until their
    memory is needed; the least recently used ones go first. cached: the number of free blocks whose contents a request
    could share. sharing: whether equal prefixes share blocks. ValueError for a count or size below 1.
    """

    def __init__(self, count: int, size: int, sharing: bool = True) -> None:
        if count < 1 or size < 1:
            raise ValueError(f"a cache of {count} blocks of {size} positions; both have to be 1 or more")
        self.count, self.size, self.sharing, self.cached = count, size, sharing, 0
        self.references = [0] * (count + 1)
        self._free = OrderedDict.fromkeys(range(1, count + 1))  # the first is taken next
        self._by_digest: dict[bytes, int] = {}
        self._digest_of: dict[int, bytes] = {}

    @property
    def free(self) -> int:
        """The number of blocks without a reference, cached ones included."""
        return len(self._free)

    def needed(self, positions: int) -> int:
        """Return the number of blocks for this many positions."""
        return -(-positions // self.size)

    def admit(self, tokens: Sequence[int], spare: int = 0) -> Admission | None:
        """Return a table for all the tokens, or None if fewer than `spare` blocks would stay free.

        It shares the cached blocks that hold the tokens' beginning. At least the last token is left to compute, since
        its logits are needed. If its position lies in a shared block, that block is copied (copy on write).
        """
        digests = self._known(tokens)
        while True:
            shared = [self._by_digest[digest] for digest in digests]
            computed = min(len(shared) * self.size, len(tokens) - 1)
            copied = computed < len(shared) * self.size
            fresh = self.needed(len(tokens)) - len(shared) + copied
            if fresh + spare <= self.free - sum(self.references[block] == 0 for block in shared):
                break
            if not copied:
                return None
            digests.pop()  # without the copy, and with one block more to compute
        for block in shared:
            self.cached -= self.references[block] == 0
            self.references[block] += 1
            self._free.pop(block, None)
        table = Table(shared + [self._take() for _ in range(fresh)], digests)
        copy = None
        if copied:
            original = table.blocks.pop(-2)
            copy = (original, table.blocks[-1])
            table.digests.pop()
            self._drop(original)
        return Admission(table, computed, copy)

    def extend(self, table: Table, positions: int) -> bool:
        """Add blocks for this many positions to a table. False, and no change, if too few are free."""
        more = self.needed(positions) - len(table.blocks)
        if more > self.free:
            return False
        table.blocks += [self._take() for _ in range(more)]
        return True

    def commit(self, table: Table, tokens: Sequence[int], computed: int) -> None:
        """Let others share the table's full blocks, whose tokens are known and whose `computed` positions are filled
        by passes that were launched before theirs. A released table has no blocks."""
        if not self.sharing:
            return
        for number in range(len(table.digests), min(computed // self.size, len(table.blocks))):
            digest = self._digest(table.digests[-1] if number else b"", tokens, number)
            table.digests.append(digest)
            if digest not in self._by_digest:
                self._by_digest[digest] = table.blocks[number]
                self._digest_of[table.blocks[number]] = digest

    def release(self, table: Table) -> None:
        """Give up a table's blocks, and empty it. The last block is evicted first: without the blocks before it,
        nobody could find it."""
        for block in reversed(table.blocks):
            self._drop(block)
        table.blocks, table.digests = [], []

    def writable(self, block: int) -> bool:
        """Return True if exactly one request refers to the block, and no other can find it."""
        return self.references[block] == 1 and block not in self._digest_of

    def _known(self, tokens: Sequence[int]) -> list[bytes]:
        digests: list[bytes] = []
        for number in range(len(tokens) // self.size if self.sharing else 0):
            digest = self._digest(digests[-1] if digests else b"", tokens, number)
            if digest not in self._by_digest:
                break
            digests.append(digest)
        return digests

    def _digest(self, before: bytes, tokens: Sequence[int], number: int) -> bytes:
        own = array("q", tokens[number * self.size : (number + 1) * self.size])
        return hashlib.blake2b(before + own.tobytes(), digest_size=16).digest()

    def _take(self) -> int:
        block, _ = self._free.popitem(last=False)
        if (digest := self._digest_of.pop(block, None)) is not None:
            del self._by_digest[digest]
            self.cached -= 1
        self.references[block] = 1
        return block

    def _drop(self, block: int) -> None:
        if self.references[block] < 1:
            raise RuntimeError(f"block {block} is released more often than it was taken")
        self.references[block] -= 1
        if self.references[block] == 0:
            self._free[block] = None
            if block in self._digest_of:
                self.cached += 1
            else:  # nothing to keep: it is the next to be taken
                self._free.move_to_end(block, last=False)
