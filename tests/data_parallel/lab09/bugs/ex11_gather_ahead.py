"""Exercise 11 of lab 09: mistakes that its check has to name, and right answers written differently."""

NAME = "gather_ahead"
RESIZE = "        whole.untyped_storage().resize_(whole.nbytes)\n"
NEXT = "        if number < last:\n            start(number + 1)\n"
FREE_FORWARD = "        if number < last:\n            wholes[number].untyped_storage().resize_(0)\n"
FREE_BACKWARD = "            wholes[number + 1].untyped_storage().resize_(0)\n"
WAIT = "            started.pop(number).wait()\n"
BEFORE = "        if number > 0:\n            start(number - 1)\n"
FINISH = "        wholes[0].untyped_storage().resize_(0)\n"
MINE = "shards[number].detach().to(whole.dtype)"
AHEAD = "        if number == 0:\n            start(0)\n        started.pop(number).wait()\n" + NEXT

BUGS: list = [
    (NAME, "the shards of the beginning",
     [("    last, started = ", "    old = [s.detach().clone() for s in shards]\n    last, started = "),
      (MINE, "old[number].to(whole.dtype)")], "you gather the initial values, but the"),
    (NAME, "gathered when it is needed", [(AHEAD, "        start(number)\n        started.pop(number).wait()\n")],
     "the all-gather of the next"),
    (NAME, "backward gathers when it is needed",
     [(WAIT, "            start(number)\n" + WAIT), (BEFORE, "")], "the all-gather of the next"),
    (NAME, "the next one is started after it has computed",
     [(NEXT, ""), (FREE_FORWARD, FREE_FORWARD + "            start(number + 1)\n")], "the all-gather of the next"),
    (NAME, "not asynchronous", [(", async_op=True)", ")"), (").wait()", ")")], "async_op=True"),
    (NAME, "waited for at once", [("async_op=True)\n", "async_op=True)\n        started[number].wait()\n")],
     "you wait for the next module's gather"),
    (NAME, "two ahead", [(NEXT, NEXT + "        if number + 2 <= last and number == 0:\n            start(2)\n")],
     "has memory"),
    (NAME, "sent in the shard's dtype", [(MINE, "shards[number].detach()")], "send them in whole's dtype"),
    (NAME, "never freed in forward", [(FREE_FORWARD, "        pass\n")], "free a module's whole after"),
    (NAME, "the last one is freed too",
     [(FREE_FORWARD, FREE_FORWARD.replace("        if number < last:\n    ", ""))],
     r"call resize_\(whole\.nbytes\) before the gather,"),
    (NAME, "gathered again for backward",
     [(FREE_FORWARD, FREE_FORWARD.replace("        if number < last:\n    ", "")),
      ("    def before_backward(number, *_):\n", "    def before_backward(number, *_):\n"
       "        if number == last:\n            start(last)\n            started.pop(last).wait()\n")],
     r"call resize_\(whole\.nbytes\) before the gather,"),
    (NAME, "not freed in backward", [(FREE_BACKWARD, "")], "free a module's whole after"),
    (NAME, "finish does nothing", [(FINISH, "        pass\n")], r"finish\(\) must free the module that backward"),
    (NAME, "not waited for in backward", [(WAIT, "            started.pop(number)\n")], "is never waited for|wait"),
    (NAME, "not waited for in forward", [("        started.pop(number).wait()\n" + NEXT,
                                                "        started.pop(number)\n" + NEXT)],
     "wait"),
    (NAME, "gathered into no memory", [(RESIZE, "")], "no memory"),
    (NAME, "wait takes away nothing", [("started.pop(number).wait()\n" + NEXT, "started.pop(0).wait()\n" + NEXT)],
     "you wait for a gather that was never started,"),
    (NAME, "finish is called", [("    return finish", "    return finish()")], "return finish itself, not its result"),
]  # fmt: skip

DIFFERENT: list = [
    (NAME, [("    last, started = len(modules) - 1, {}", "    last, started = len(modules) - 1, [None] * len(modules)"),
            ("started.pop(number)", "started[number]")]),
    (NAME, [(MINE, "shards[number].data.to(dtype=whole.dtype, copy=True)")]),
    (NAME, [(FREE_BACKWARD + WAIT, WAIT + FREE_BACKWARD)]),  # nothing computes between the two
    (NAME, [(FINISH, "        for whole in wholes:\n            whole.untyped_storage().resize_(0)\n")]),
    (NAME, [("started[number] = dist.all_gather_into_tensor(whole, mine, group=group, async_op=True)",
             "started[number] = dist.all_gather(list(whole.chunk(dist.get_world_size(group))), mine, group, True)")]),
]  # fmt: skip
