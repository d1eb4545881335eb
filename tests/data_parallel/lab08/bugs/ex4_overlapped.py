"""Exercise 4 of lab 08: mistakes that its check has to name, and right answers written differently."""

NAME = "overlapped"
SEND = "        work = dist.all_reduce(parameter.grad, group=group, async_op=True)\n"
WAIT = "            work.wait()\n"
DIVIDE = "            parameter.grad /= dist.get_world_size(group)\n"
CLEAR = "        under_way.clear()\n"
KEEP = "        under_way.append((parameter, work))\n"
IF = "        if parameter.requires_grad:\n"
HOOK = "            parameter.register_post_accumulate_grad_hook(send)\n"

LOOP = "        for parameter in model.parameters():\n" + IF.replace("    ", "      ", 1) + "    " + HOOK

COPY = "        copy = parameter.grad.clone()\n"
COPIES = [
    (SEND + KEEP, COPY + SEND.replace("(parameter.grad", "(copy") + KEEP.replace("parameter,", "parameter, copy,")),
    ("for parameter, work in", "for parameter, copy, work in"),
    (DIVIDE, "            parameter.grad = copy / dist.get_world_size(group)\n"),
]

BUGS: list = [
    (NAME, "copies, never cleared", [*COPIES, (CLEAR, "")], "waits in step 2 for all-reduces of earlier steps"),
    (NAME, "sent twice", [(SEND, SEND + SEND)], "sent a second time while the first"),
    (NAME, "hooks twice", [(HOOK, HOOK + HOOK)], "sent a second time while the first"),
    (
        NAME,
        "the mean is dropped",
        [(DIVIDE, DIVIDE.replace(" /= ", ".div(").replace(")\n", "))\n"))],
        "nothing uses the result of `parameter.grad.div",
    ),
    (
        NAME,
        "the mean has a name alone",
        [(DIVIDE, DIVIDE.replace("parameter.grad /=", "mean = parameter.grad /"))],
        "nothing uses the result of `mean = ",
    ),
    (NAME, "a sum", [(DIVIDE, "")], "the sum over the ranks, not the mean"),
    (NAME, "wait forgotten", [(WAIT, "")], "wait"),
    (NAME, "divided before wait", [(WAIT + DIVIDE, DIVIDE + WAIT)], "until wait|belongs to the collective"),
    (
        NAME,
        "divided in the hook after the start",
        [(KEEP, KEEP + "        parameter.grad /= dist.get_world_size(group)\n"), (DIVIDE, "")],
        "until wait|belongs to the collective",
    ),
    (NAME, "waits in the hook", [(KEEP, KEEP + "        work.wait()\n"), (WAIT, "")], "the hook calls wait"),
    (NAME, "not asynchronous", [(", async_op=True", ""), (WAIT, "")], "async_op=True is missing"),
    (
        NAME,
        "not asynchronous, waits",
        [(", async_op=True", "")],
        "async_op=True returns a handle|without async_op=True",
    ),
    (NAME, "the list grows", [(CLEAR, "")], "step 2(.|\n)*Likely cause: under_way is not cleared[^\n]*again$"),
    (
        NAME,
        "hooks once more in each step",
        [(CLEAR, CLEAR + "        register()\n\n    def register():\n" + LOOP)],
        "step 2(.|\n)*Likely cause: the hooks are registered again in each step[^\n]*twice$",
    ),
    (
        NAME,
        "the mean twice",
        [("parameter.grad, group=group", "parameter.grad, op=dist.ReduceOp.AVG, group=group")],
        "the mean is taken twice",
    ),
    (NAME, "frozen hooked", [(IF, "        if True:\n")], "a frozen parameter gets neither gradient nor hook"),
    (
        NAME,
        "before it is in .grad",
        [("register_post_accumulate_grad_hook", "register_hook")],
        "the gradient before .grad is set",
    ),
    (NAME, "the hook is called", [("_hook(send)", "_hook(send(parameter))")], ".grad is None|None"),
    (NAME, "no hooks", [(HOOK, "            pass\n")], "this rank's own gradient"),
    (
        NAME,
        "started in finish",
        [
            (SEND + KEEP, "        under_way.append(parameter)\n"),
            (
                "        for parameter, work in under_way:\n",
                (
                    "        works = [(p, dist.all_reduce(p.grad, group=group, async_op=True)) for p "
                    "in under_way]\n        for parameter, work in works:\n"
                ),
            ),
        ],
        "start in finish.., after backward",
    ),
    (
        NAME,
        "only the last is waited for",
        [
            (
                "        for parameter, work in under_way:\n" + WAIT,
                "        under_way[-1][1].wait()\n        for parameter, work in under_way:\n",
            )
        ],
        "wait",
    ),
    (
        NAME,
        "tied twice",
        [("model.parameters():", "[p for m in model.modules() for p in m.parameters(recurse=False)]:")],
        "sent twice|belongs to the collective|until wait",
    ),
    (NAME, "finish is called", [("return finish", "return finish()")], "instead of the function finish"),
    (NAME, "the default group", [("group=group, ", "")], "group= is missing|group=group is missing"),
    (NAME, "all ranks divide", [("dist.get_world_size(group)", "dist.get_world_size()")], "without group"),
    (
        NAME,
        "a copy is sent",
        [("all_reduce(parameter.grad,", "all_reduce(parameter.grad.clone(),")],
        "never added to the others'",
    ),
    (
        NAME,
        "hooks in finish again",
        [
            (
                CLEAR,
                CLEAR
                + (
                    "        for p in model.parameters():\n            if p.requires_grad:\n       "
                    "         p.register_post_accumulate_grad_hook(send)\n"
                ),
            )
        ],
        "step 2|hooks|belongs to the collective",
    ),
    (
        NAME,
        "all when the last arrives",
        [
            (
                SEND + KEEP,
                (
                    "        waiting.append(parameter)\n        if len(waiting) == "
                    "sum(p.requires_grad for p in model.parameters()):\n            "
                    "under_way.extend((p, dist.all_reduce(p.grad, group=group, async_op=True)) "
                    "for p in waiting)\n            waiting.clear()\n"
                ),
            ),
            ("    under_way = []", "    waiting = []\n    under_way = []"),
        ],
        "sends 0 gradients when last.bias arrives(.|\n)*without waiting for another",
    ),
    (
        NAME,
        "under_way is rebound",
        [("under_way.append((parameter, work))", "under_way = [*under_way, (parameter, work)]")],
        "nonlocal|makes a name",
    ),
    (
        NAME,
        "all in finish",
        [
            (HOOK, "            pass\n"),
            (
                "        for parameter, work in under_way:\n" + WAIT,
                (
                    "        for parameter in (p for p in model.parameters() if p.requires_grad):\n"
                    "            dist.all_reduce(parameter.grad, group=group)\n"
                ),
            ),
        ],
        r"sends nothing before backward ends(.|\n)*start them in send\(\)",
    ),
    (
        NAME,
        "the gradient's hook",
        [
            ("parameter.grad, group=group, async", "parameter, group=group, async"),
            (DIVIDE, "            parameter /= dist.get_world_size(group)\n"),
            ("register_post_accumulate_grad_hook", "register_hook"),
        ],
        "before wait.. on its handle, or in a register_hook",
    ),
    (
        NAME,
        "called at once",
        [(HOOK, HOOK.replace("(send)", "(send(parameter))"))],
        "register send itself, without parentheses",
    ),
]
DIFFERENT: list = [
    (NAME, COPIES),
    (NAME, [(WAIT, "            work.get_future().wait()\n")]),
    (NAME, [(SEND, "        parameter.grad /= group.size()\n" + SEND), (DIVIDE, "")]),
    (NAME, [(", group=group, async_op", ", dist.ReduceOp.AVG, group, async_op"), (DIVIDE, "")]),
    (
        NAME,
        [
            (CLEAR, ""),
            (
                "        for parameter, work in under_way:\n",
                "        while under_way:\n            parameter, work = under_way.pop()\n",
            ),
            (DIVIDE, "            parameter.grad = parameter.grad / dist.get_world_size(group)\n"),
        ],
    ),
    (
        NAME,
        [
            (
                SEND + KEEP,
                (
                    "        total = parameter.grad.contiguous().double().float()\n        "
                    "under_way.append((parameter, (total, dist.all_reduce(total, group=group, async_op=True))))\n"
                ),
            ),
            (
                WAIT + DIVIDE,
                "            work[1].wait()\n            parameter.grad.copy_(work[0] / dist.get_world_size(group))\n",
            ),
        ],
    ),
    (NAME, [(HOOK, "            parameter.register_post_accumulate_grad_hook(lambda p: send(p))\n")]),
]
