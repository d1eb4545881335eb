"""Exercise 2 of lab 10: mistakes that its check has to name, and right answers written differently."""

NAME = "naive_step"
NEEDS = "            x.requires_grad_()\n"
DIVIDED = "loss_of(y, target) / len(inputs)"
SEND, RECEIVE = "            group.send(y, group.rank + 1)\n", "            group.receive(dy, group.rank + 1)\n"
EMPTY, RUN = "            dy = torch.empty(shape)\n", "        y = stage(x)\n"
FIRST, ALWAYS = "        if group.rank > 0:\n", "        if True:\n"
BACK = "            group.send(x.grad, group.rank - 1)\n"
RECEIVED = "            group.receive(x, group.rank - 1)\n"

LAST, RETURN = "        if group.rank == group.size - 1:\n", "    return total\n"
DIVIDE_ALL = "    for p in stage.parameters():\n        p.grad /= len(inputs)\n"
SEND_NONE = "send got None instead of a tensor: x.grad exists only after the backward pass"

BUGS: list = [
    (NAME, "no requires_grad", [(NEEDS, "")], SEND_NONE),
    (NAME, "detached input", [("y = stage(x)", "y = stage(x.detach() if group.rank else x)")], SEND_NONE),
    (NAME, "sent before the backward pass", [(RUN, RUN + "        if group.rank > 0:\n" + BACK)], SEND_NONE),
    (NAME, "no requires_grad, and a method of x.grad", [(NEEDS, ""), ("x.grad", "x.grad.clone()")],
     "a gradient is None: x.grad exists only after"),
    (NAME, "the result of receive", [(RECEIVED, RECEIVED.replace("group.receive", "x = group.receive"))],
     "receive fills the tensor that it gets, and returns None"),
    (NAME, "None is received into", [("            x = torch.empty(shape)\n", "")],
     "receive fills the tensor that it gets, and returns None"),
    (NAME, "swapped arguments", [(SEND, SEND.replace("y, group.rank + 1", "group.rank + 1, y"))],
     "a rank is the second argument"),
    (NAME, "bfloat16", [("x = torch.empty(shape)", "x = torch.empty(shape, dtype=torch.bfloat16)")],
     "differ in size or dtype"),
    (NAME, "no graph", [(RUN, "        with torch.no_grad():\n    " + RUN)], "run the stage without no_grad"),
    (NAME, "cleared at the start", [("    total = 0.0\n", "    total = 0.0\n    stage.zero_grad()\n")],
     "gradients from before the step are lost"),
    (NAME, "divided at the end", [(DIVIDED, "loss_of(y, target)"), ("loss.item()", "loss.item() / len(inputs)"),
                                  (RETURN, DIVIDE_ALL + RETURN)],
     "gradients from before the step are divided by the number of micro-batches too"),
    (NAME, "cleared at the end", [(RETURN, "    stage.zero_grad()\n" + RETURN)], "nothing in the step may clear them"),
    (NAME, "updates", [(RETURN, "    torch.optim.SGD(stage.parameters(), 0.1).step()\n" + RETURN)],
     "an optimizer updates the parameters later"),
    (NAME, "one rank computes nothing", [(LAST, LAST.replace(":", " and group.rank > 0:")),
                                         ("        else:\n", "        elif group.size > 1:\n")],
     "the last rank, which may be the only one, computes the loss"),
    (NAME, "detached output", [("y = stage(x)", "y = stage(x).detach()")], "the graph is cut"),
    (NAME, "not divided", [(DIVIDED, "loss_of(y, target)"), ("loss.item()", "loss.item() / len(inputs)")],
     "not divided by the number of micro-batches"),
    (NAME, "divided by the ranks", [(DIVIDED, "loss_of(y, target) / group.size"),
                                    ("loss.item()", "loss.item() * group.size / len(inputs)")],
     "divided by the number of ranks"),
    (NAME, "divided on every rank", [("y.backward(dy)", "y.backward(dy / len(inputs))")], "already divided"),
    (NAME, "every rank computes the loss", [("        if group.rank == group.size - 1:\n", "        if True:\n")],
     "only the last rank computes the loss"),
    (NAME, "the gradient of the output is passed on", [(BACK, BACK.replace("x.grad", "x.grad if group.rank == "
                                                        "group.size - 1 else dy"))], "send x.grad"),
    (NAME, "the input is sent back", [(BACK, BACK.replace("x.grad", "x"))], "sends its input back"),
    (NAME, "the output is sent back", [(BACK, BACK.replace("x.grad", "y"))],
     "the two tensors differ in size or dtype"),
    (NAME, "backward on ones", [("y.backward(dy)", "y.backward(torch.ones_like(y))")], "a gradient of ones"),
    (NAME, "backward without the gradient", [("y.backward(dy)", "y.backward()")], "y.backward needs the gradient"),
    (NAME, "no backward", [("            y.backward(dy)\n", ""), ("x.grad, group", "torch.zeros(shape), group")],
     r"y.backward\(gradient\) adds them to .grad"),
    (NAME, "gradients cleared", [(RUN, "        stage.zero_grad()\n" + RUN)],
     "backward adds them"),
    (NAME, "every rank receives", [(FIRST + "            x = torch", ALWAYS + "            x = torch")],
     "rank 0 has no rank before it"),
    (NAME, "no first rank at the end", [(FIRST + "            group.send", ALWAYS + "            group.send")],
     "rank 0 has no rank before it"),
    (NAME, "the last rank sends on", [(RUN, RUN + "        group.send(y, group.rank + 1)\n"),
                                      (SEND, "")], "the last rank has no rank after it"),
    (NAME, "nothing received", [("            x = torch.empty(shape)\n" + RECEIVED + NEEDS, "            pass\n")],
     "only rank 0 has inputs, and the other ranks receive theirs"),
    (NAME, "the gradient is awaited first", [(SEND, ""), (RECEIVE, RECEIVE + SEND)], "each send needs a receive"),
    (NAME, "the gradient goes down first", [(SEND + EMPTY + RECEIVE, EMPTY + RECEIVE + SEND)],
     "each send needs a receive"),
    (NAME, "the gradient is never received", [(RECEIVE, "")], "each send needs a receive"),
    (NAME, "no gradient sent back", [(BACK, "            pass\n")], "each send needs a receive"),
    (NAME, "the loss is not averaged", [("total += loss.item()", "total += loss.item() * len(inputs)")],
     "the sum of the losses"),
    (NAME, "the last loss", [("total += loss.item()", "total = loss.item() * len(inputs)")],
     "the loss of the last micro-batch alone"),
    (NAME, "no loss", [("    return total\n", "    return None\n")], "return the loss"),
    (NAME, "the wrong shape", [("x = torch.empty(shape)", "x = torch.empty(shape[::-1])")], "rank 1 raised"),
]  # fmt: skip

DIFFERENT = [
    (NAME, [("            x = torch.empty(shape)\n", "            x = torch.zeros(shape)\n"),
            (SEND, SEND.replace("y,", "y.detach(),")), ("torch.empty(shape)", "torch.empty_like(y)")]),
    (NAME, [("            y.backward(dy)\n", "            torch.autograd.backward(y, dy)\n"),
            ("loss.item()", "loss.detach()")]),
    (NAME, [(DIVIDED, "loss_of(y, target)"), ("loss.backward()", "loss.backward(torch.tensor(1 / len(inputs)))"),
            ("loss.item()", "loss.item() / len(inputs)")]),
    (NAME, [("loss.item()", "loss")]),
    (NAME, [("x.requires_grad_()", "x.requires_grad = True"), ("group.send(x.grad,", "group.send(x.grad.clone(),")]),
]  # fmt: skip
