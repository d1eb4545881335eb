"""Lab 13, exercise 4: an allocator of blocks, with a table per request and reference counts."""


def block_tables(count, size):
    """Return (tables, references, extend, fork, release), which manage `count` blocks.

    A block holds `size` positions. tables: a dict from each request to the list of its blocks, in
    the order of its positions. references: a list of `count` numbers; references[b] says in how
    many tables block b is. A block in no table is free; of the free blocks, the one with the
    smallest number is taken next.
    """
    tables, references = {}, [0] * count

    def extend(request, positions):
        """Give the request blocks for `positions` positions in all, and return True.

        A request without a table gets one; one with more blocks than it needs keeps them. If too
        few blocks are free, return False and change nothing, not even the dict.
        """
        # 1. How many blocks does it need, and how many does it lack?
        # 2. Take the free blocks with the smallest numbers, if there are enough.
        ### BEGIN SOLUTION
        table = tables.get(request, [])
        lacking = -(-positions // size) - len(table)
        free = [block for block in range(count) if references[block] == 0]
        if lacking > len(free):
            return False
        for block in free[: max(lacking, 0)]:
            references[block] += 1
            table.append(block)
        tables[request] = table
        return True
        ### END SOLUTION

    def fork(request, new):
        """Give the request `new` a table with the same blocks as `request`, which both then
        use.""" # 3. Two tables must not be one list.
        ### BEGIN SOLUTION
        tables[new] = list(tables[request])
        for block in tables[new]:
            references[block] += 1
        ### END SOLUTION

    def release(request):
        """Remove the request's table. Its blocks lose one reference each."""
        ### BEGIN SOLUTION
        for block in tables.pop(request):
            references[block] -= 1
        ### END SOLUTION

    return tables, references, extend, fork, release
