"""Test the block allocator: nothing leaks, nothing is released twice, no shared block is written, digests go."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from labs_helpers.serving.blocks import SCRATCH, Blocks, Table


class Tables(RuleBasedStateMachine):
    """Requests that come, grow, commit and leave, beside a model of what every block's positions hold.

    The contents of a position are the tokens up to it, of which its keys and values are a function.
    """

    @initialize(count=st.integers(1, 9), size=st.integers(1, 3), sharing=st.booleans())
    def make(self, count, size, sharing):
        self.blocks, self.live, self.held = Blocks(count, size, sharing), [], {}

    def write(self, table, tokens, start, stop):
        size = self.blocks.size
        for position in range(start, stop):
            block = table.blocks[position // size]
            assert self.blocks.writable(block) and block != SCRATCH
            self.held[block, position % size] = tuple(tokens[: position + 1])

    @rule(tokens=st.lists(st.integers(0, 1), min_size=1, max_size=12), spare=st.integers(0, 2))
    def admit(self, tokens, spare):
        blocks, free, size = self.blocks, self.blocks.free, self.blocks.size
        admitted = blocks.admit(tokens, spare)
        if admitted is None:
            assert blocks.free == free < blocks.needed(len(tokens)) + spare + 1
            return
        table = admitted.table
        assert blocks.free >= spare and len(table.blocks) == blocks.needed(len(tokens))
        assert 0 <= admitted.computed < len(tokens) and (blocks.sharing or not admitted.computed)
        if admitted.copy:
            source, target = admitted.copy
            assert target == table.blocks[-1] and admitted.computed == len(tokens) - 1
            for offset in range(size):
                self.held[target, offset] = self.held[source, offset]
        for position in range(admitted.computed):  # what is shared is what it would have computed
            assert self.held[table.blocks[position // size], position % size] == tuple(tokens[: position + 1])
        self.write(table, tokens, admitted.computed, len(tokens))
        self.live.append((table, list(tokens)))

    @precondition(lambda self: self.live)
    @rule(which=st.integers(0, 99), more=st.lists(st.integers(0, 1), min_size=1, max_size=4))
    def grow(self, which, more):
        table, tokens = self.live[which % len(self.live)]
        before, free = list(table.blocks), self.blocks.free
        if self.blocks.extend(table, len(tokens) + len(more)):
            tokens += more
            self.write(table, tokens, len(tokens) - len(more), len(tokens))
            assert len(table.blocks) == self.blocks.needed(len(tokens))
        else:
            assert table.blocks == before and self.blocks.free == free

    @precondition(lambda self: self.live)
    @rule(which=st.integers(0, 99), share=st.integers(0, 4))
    def commit(self, which, share):
        table, tokens = self.live[which % len(self.live)]
        self.blocks.commit(table, tokens, len(tokens) * share // 4)

    @precondition(lambda self: self.live)
    @rule(which=st.integers(0, 99))
    def release(self, which):
        table, _ = self.live.pop(which % len(self.live))
        self.blocks.release(table)
        assert table == Table()
        self.blocks.release(table)  # an empty table has nothing to release twice

    @invariant()
    def references_are_those_of_the_tables_and_no_block_is_lost(self):
        if not hasattr(self, "blocks"):
            return
        blocks = self.blocks
        counted = [0] * (blocks.count + 1)
        for table, _ in self.live:
            assert len(set(table.blocks)) == len(table.blocks)
            for block in table.blocks:
                counted[block] += 1
        assert counted == blocks.references and counted[SCRATCH] == 0
        assert blocks.free == counted.count(0) - 1 and blocks.cached == sum(
            block in blocks._digest_of for block in blocks._free
        )
        assert {block: digest for digest, block in blocks._by_digest.items()} == blocks._digest_of


TestTables = Tables.TestCase
TestTables.settings = settings(max_examples=150, stateful_step_count=30)


def committed(blocks, tokens):
    admitted = blocks.admit(tokens)
    blocks.commit(admitted.table, tokens, len(tokens))
    return admitted


def test_a_prefix_is_shared_and_a_whole_prompt_is_copied_on_write():
    blocks = Blocks(10, 2)
    first = committed(blocks, [1, 2, 3, 4, 5])
    second = blocks.admit([1, 2, 3, 9])
    assert second.table.blocks[0] == first.table.blocks[0] and second.computed == 2 and second.copy is None
    whole = blocks.admit([1, 2, 3, 4])
    assert whole.table.blocks[0] == first.table.blocks[0] and whole.computed == 3
    assert whole.copy == (first.table.blocks[1], whole.table.blocks[1])
    assert blocks.references[first.table.blocks[0]] == 3 and blocks.references[first.table.blocks[1]] == 1


def test_without_a_block_for_the_copy_it_computes_the_last_block_again():
    blocks = Blocks(2, 2)
    blocks.release(committed(blocks, [1, 2, 3, 4]).table)
    again = blocks.admit([1, 2, 3, 4])
    assert again.computed == 2 and again.copy is None and blocks.free == 0


def test_the_least_recently_used_contents_go_first_and_the_end_of_a_prompt_before_its_beginning():
    blocks = Blocks(4, 1)
    blocks.release(committed(blocks, [1, 2]).table)
    blocks.release(committed(blocks, [3, 4]).table)
    assert blocks.cached == 4
    blocks.release(blocks.admit([5]).table)  # takes the block of 2, and leaves it without contents
    assert blocks.cached == 3 and blocks.admit([1, 2, 9]).computed == 1
    assert blocks.admit([3, 4]) is None
    with pytest.raises(RuntimeError, match="released more often"):
        blocks.release(Table([4 if blocks.references[4] == 0 else 3]))


def test_sizes_that_do_not_fit():
    for count, size in ((0, 1), (1, 0)):
        with pytest.raises(ValueError, match="both have to be 1 or more"):
            Blocks(count, size)
