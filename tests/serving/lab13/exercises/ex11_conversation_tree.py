"""Lab 13, exercise 11: the reference of the transfer exercise, which students do not get."""


def conversation_tree(events, size):
    """Return (tables, references, copies, peak) after the events, with blocks of `size`
    positions.

    events, in order: ("start", name) begins an empty conversation. ("fork", name, parent) begins
    one that shares all of the parent's positions so far. ("append", name, count) adds positions
    to a conversation. ("end", name) ends it, and gives up its blocks.
    tables: name → list of blocks, for the conversations that have not ended. references: block →
    the number of tables it is in, for blocks in use. copies: list of (from, to), in order. peak:
    the most blocks in use at a time.
    Nobody writes into a block that is in another table, too. A conversation that appends to such
    a block first takes a new one, copies the old one there, and puts the new one in its place.
    Of the blocks that are not in use, the one with the smallest number, from 0, is taken next.
    """
    # Keep the number of positions of each conversation. Which block gets the next position?
    ### BEGIN SOLUTION
    tables, lengths, references, copies, peak = {}, {}, {}, [], 0

    def take():
        block = next(number for number in range(len(references) + 1) if number not in references)
        references[block] = 1
        return block

    def drop(block):
        references[block] -= 1
        if references[block] == 0:
            del references[block]

    for kind, name, *more in events:
        if kind == "start":
            tables[name], lengths[name] = [], 0
        elif kind == "fork":
            tables[name], lengths[name] = list(tables[more[0]]), lengths[more[0]]
            for block in tables[name]:
                references[block] += 1
        elif kind == "end":
            for block in tables.pop(name):
                drop(block)
        else:
            table, length = tables[name], lengths[name]
            if more[0] and length % size and references[table[-1]] > 1:
                old, table[-1] = table[-1], take()
                copies.append((old, table[-1]))
                drop(old)
            lengths[name] += more[0]
            while len(table) * size < lengths[name]:
                table.append(take())
        peak = max(peak, len(references))
    return tables, references, copies, peak
    ### END SOLUTION
