"""Exercise 9 of lab 09: mistakes that its check has to name, and right answers written differently."""

NAME = "checkpoint"
CUT = "return whole[:numel].clone()"
ENTRY = "gather(value) if value.shape == shard.shape else value.clone()"
PADDED = "            padded = torch.nn.functional.pad(whole, (0, size * shard.numel() - numel))\n"
PART = "return padded.chunk(size)[rank].clone()"
COPY = 'shard.data.copy_(part(state["parameters"]))'
LOADED = "part(value) if value.ndim == 1 else value.clone()"

SETS = """        optimizer.state[shard] = {
            name: part(value) if value.ndim == 1 else value.clone()
            for name, value in state["optimizer"].items()
        }
"""

BUGS: list = [
    (
        NAME,
        "entries are popped",
        [
            (
                "for name, value in optimizer.state[shard].items()",
                "for name, value in [(k, optimizer.state[shard].pop(k)) for k in list(optimizer.state[shard])]",
            )
        ],
        "has taken away step",
    ),
    (
        NAME,
        "the shard is zeroed",
        [
            (
                'return {"parameters": gather(shard), ',
                'whole = gather(shard)\n        shard.data.zero_()\n        return {"parameters": whole, ',
            )
        ],
        "has changed shard",
    ),
    (
        NAME,
        "a chunk without clone",
        [("padded.chunk(size)[rank].clone()", "padded.chunk(size)[rank]")],
        "clone\\(\\) copies the part",
    ),
    (
        NAME,
        "saved as a parameter",
        [
            ("return whole[:numel].clone()", "return nn.Parameter(whole[:numel].clone())"),
            ("import torch.distributed as dist\n", "import torch.distributed as dist\nfrom torch import nn\n"),
        ],
        "with a graph",
    ),
    (
        NAME,
        "parts by their number of elements",
        [("value.shape == shard.shape", "value.numel() == shard.numel()")],
        "one number per tensor",
    ),
    (
        NAME,
        "the step as a number",
        [
            (
                "else value.clone()\n            for name, value in optimizer.state[shard]",
                "else value.item()\n            for name, value in optimizer.state[shard]",
            )
        ],
        "makes a number of a tensor",
    ),
    (
        NAME,
        "a view where there is one rank",
        [
            (
                "        def gather(part):\n",
                "        def gather(part):\n            if size == 1:\n                return part.data[:numel]\n",
            )
        ],
        "changes as training goes on",
    ),
    (NAME, "always float32", [("part.new_empty(size", "torch.empty(size")], "not always float32"),
    (NAME, "only save", [("return save, load", "return save")], "rank 0 returned <function"),
    (NAME, "padding is saved", [(CUT, "return whole")], "the padding is in it"),
    (NAME, "the shard is saved", [("gather(shard)}"[:-1], "shard.detach().clone()")], "this rank's shard alone"),
    (NAME, "states are not gathered", [(ENTRY, "value.clone()")], "this rank's shard alone"),
    (NAME, "the step is gathered", [(ENTRY, "gather(value.reshape(-1))")], "one number per tensor"),
    (
        NAME,
        "the step is shared",
        [
            (
                "else value.clone()\n            for name, value in optimizer",
                "else value\n            for name, value in optimizer",
            )
        ],
        "changes as training goes on(.|\n)*clone",
    ),
    (
        NAME,
        "the step is left out",
        [("optimizer.state[shard].items()\n", "optimizer.state[shard].items() if value.ndim\n")],
        "'optimizer' has",
    ),
    (NAME, "cut in front", [(CUT, "return whole[len(whole) - numel :].clone()")], "cut off in front"),
    (
        NAME,
        "loaded by 4 ranks",
        [(PART, "return torch.nn.functional.pad(whole, (0, -numel % 4)).chunk(4)[rank].clone()")],
        "what other numbers of ranks have",
    ),
    (
        NAME,
        "the first part",
        [("padded.chunk(size)[rank]", "padded.chunk(size)[0]")],
        "every rank loads the first part",
    ),
    (NAME, "no padding", [(PADDED, "            padded = whole\n")], "padding included"),
    (
        NAME,
        "padding in front",
        [("(0, size * shard.numel() - numel)", "(size * shard.numel() - numel, 0)")],
        "not in front",
    ),
    (
        NAME,
        "padding of ones",
        [("size * shard.numel() - numel))", "size * shard.numel() - numel), value=1.0)")],
        "padding is 0",
    ),
    (
        NAME,
        "states are not loaded",
        [("        optimizer.state[shard] = {", "        _ = {")],
        "optimizer.state\\[shard\\] has \\[\\]",
    ),
    (NAME, "parameters are not loaded", [(COPY, 'part(state["parameters"])')], "nothing is loaded into it"),
    (NAME, "states are loaded whole", [(LOADED, "value.clone()")], "neither the whole"),
    (
        NAME,
        "the given step is taken",
        [(LOADED, "part(value) if value.ndim == 1 else value")],
        "changes the state that load.. was given as training goes on",
    ),
    (NAME, "by number", [("        optimizer.state[shard] = {", "        optimizer.state[0] = {")], "looked up by"),
    (
        NAME,
        "the entries that a fresh optimizer has",
        [
            (
                SETS,
                SETS.replace("name, value in state", "name in optimizer.state[shard] for value in [state").replace(
                    ".items()", "[name]]"
                ),
            )
        ],
        "the state of a fresh optimizer is empty",
    ),
    (
        NAME,
        "into a copy of the entries",
        [("        optimizer.state[shard] = {", "        dict(optimizer.state[shard])['all'] = {")],
        "Likely cause: nothing that load.. does reaches optimizer.state.shard.$",
    ),
    (
        NAME,
        "only the optimizer is saved",
        [('return {"parameters": gather(shard), "optimizer": state}', "return state")],
        "is asked for",
    ),
    (
        NAME,
        "on rank 0 alone",
        [('return {"parameters": gather(shard)', 'if rank == 0:\n            return {"parameters": gather(shard)')],
        "deadlock|asked for",
    ),
    (NAME, "not waited for", [("part.detach(), group=group)", "part.detach(), group=group, async_op=True)")], "wait"),
]

DIFFERENT: list = [
    (NAME, [(CUT, "return whole.narrow(0, 0, numel).clone()"), (COPY, 'shard.data = part(state["parameters"])')]),
    (
        NAME,
        [("value.shape == shard.shape", "value.dim()"), ("value.ndim == 1", "value.numel() == numel and value.dim()")],
    ),
    (
        NAME,
        [(PADDED, "            padded = whole.new_zeros(size * shard.numel())\n            padded[:numel] = whole\n")],
    ),
    (
        NAME,
        [
            (
                "            dist.all_gather_into_tensor(whole, part.detach(), group=group)\n",
                "            dist.all_gather(list(whole.chunk(size)), part.detach().clone(), group=group)\n",
            )
        ],
    ),
]
