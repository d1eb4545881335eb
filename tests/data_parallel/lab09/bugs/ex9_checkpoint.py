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
        "with an autograd graph, or as a parameter",
    ),
    (
        NAME,
        "parts by their number of elements",
        [("value.shape == shard.shape", "value.numel() == shard.numel()")],
        "a single number per tensor is the same on all",
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
        r"\.item\(\) converts a tensor into a number, but",
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
        "returns a state that changes when training",
    ),
    (NAME, "always float32", [("part.new_empty(size", "torch.empty(size")], "not always float32"),
    (NAME, "only save", [("return save, load", "return save")], "rank 0 returned <function"),
    (NAME, "padding is saved", [(CUT, "return whole")], "it contains the padding, which differs on"),
    (
        NAME,
        "the shard is saved",
        [("gather(shard)}"[:-1], "shard.detach().clone()")],
        "this is only this rank's shard: the gather is",
    ),
    (NAME, "states are not gathered", [(ENTRY, "value.clone()")], "this is only this rank's shard: the gather is"),
    (
        NAME,
        "the step is gathered",
        [(ENTRY, "gather(value.reshape(-1))")],
        "a single number per tensor is the same on all",
    ),
    (
        NAME,
        "the step is shared",
        [
            (
                "else value.clone()\n            for name, value in optimizer",
                "else value\n            for name, value in optimizer",
            )
        ],
        "changes when training continues(.|\n)*clone",
    ),
    (
        NAME,
        "the step is left out",
        [("optimizer.state[shard].items()\n", "optimizer.state[shard].items() if value.ndim\n")],
        "'optimizer' has",
    ),
    (
        NAME,
        "cut in front",
        [(CUT, "return whole[len(whole) - numel :].clone()")],
        "you cut elements off at the front, but the",
    ),
    (
        NAME,
        "loaded by 4 ranks",
        [(PART, "return torch.nn.functional.pad(whole, (0, -numel % 4)).chunk(4)[rank].clone()")],
        "the part for another number of ranks",
    ),
    (
        NAME,
        "the first part",
        [("padded.chunk(size)[rank]", "padded.chunk(size)[0]")],
        "every rank loads the first part",
    ),
    (NAME, "no padding", [(PADDED, "            padded = whole\n")], r"a part has shard\.numel\(\) elements on every"),
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
        "fill the padding after the last element with 0",
    ),
    (
        NAME,
        "states are not loaded",
        [("        optimizer.state[shard] = {", "        _ = {")],
        "optimizer.state\\[shard\\] has \\[\\]",
    ),
    (NAME, "parameters are not loaded", [(COPY, 'part(state["parameters"])')], "nothing is loaded into it"),
    (NAME, "states are loaded whole", [(LOADED, "value.clone()")], r"a part has shard\.numel\(\) elements on every"),
    (
        NAME,
        "the given step is taken",
        [(LOADED, "part(value) if value.ndim == 1 else value")],
        r"changes the state passed to load\(\) when",
    ),
    (
        NAME,
        "by number",
        [("        optimizer.state[shard] = {", "        optimizer.state[0] = {")],
        r"the optimizer looks up optimizer\.state by shard",
    ),
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
        r"a fresh optimizer has no state, so load\(\) finds",
    ),
    (
        NAME,
        "into a copy of the entries",
        [("        optimizer.state[shard] = {", "        dict(optimizer.state[shard])['all'] = {")],
        "Likely cause: load.. never changes optimizer.state.shard.$",
    ),
    (
        NAME,
        "only the optimizer is saved",
        [('return {"parameters": gather(shard), "optimizer": state}', "return state")],
        r": save\(\) returned|; expected the tensor itself",
    ),
    (
        NAME,
        "on rank 0 alone",
        [('return {"parameters": gather(shard)', 'if rank == 0:\n            return {"parameters": gather(shard)')],
        r"deadlock|save\(\) returned",
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
