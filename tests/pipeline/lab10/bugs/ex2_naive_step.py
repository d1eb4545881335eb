"""Exercise 2 of lab 10: mistakes that its check has to name, and right answers written differently."""

NAME = "naive_step"
NEEDS = "            x.requires_grad_()\n"
DIVIDED = "loss_of(y, target) / len(inputs)"
SEND, RECEIVE = "            group.send(y, group.rank + 1)\n", "            group.receive(dy, group.rank + 1)\n"
EMPTY, RUN = "            dy = torch.empty(shape)\n", "        y = stage(x)\n"
FIRST, ALWAYS = "        if group.rank > 0:\n", "        if True:\n"
BACK = "            group.send(x.grad, group.rank - 1)\n"
RECEIVED = "            group.receive(x, group.rank - 1)\n"

BUGS: list = [
    (NAME, "no requires_grad", [(NEEDS, "")], "a received activation needs x.requires_grad_"),
    (NAME, "detached input", [("y = stage(x)", "y = stage(x.detach() if group.rank else x)")],
     "a received activation needs x.requires_grad_"),
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
     "the two tensors differ in size"),
    (NAME, "backward on ones", [("y.backward(dy)", "y.backward(torch.ones_like(y))")], "a gradient of ones"),
    (NAME, "backward without the gradient", [("y.backward(dy)", "y.backward()")], "y.backward needs the gradient"),
    (NAME, "no backward", [("            y.backward(dy)\n", ""), ("x.grad, group", "torch.zeros(shape), group")],
     "does not reach this rank's stage"),
    (NAME, "gradients cleared", [(RUN, "        stage.zero_grad()\n" + RUN)],
     "backward adds them"),
    (NAME, "every rank receives", [(FIRST + "            x = torch", ALWAYS + "            x = torch")],
     "rank 0 has no rank before it"),
    (NAME, "no first rank at the end", [(FIRST + "            group.send", ALWAYS + "            group.send")],
     "rank 0 has no rank before it"),
    (NAME, "the last rank sends on", [(RUN, RUN + "        group.send(y, group.rank + 1)\n"),
                                      (SEND, "")], "the last rank has no rank after it"),
    (NAME, "nothing received", [("            x = torch.empty(shape)\n" + RECEIVED + NEEDS, "            pass\n")],
     "the other ranks receive their input"),
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
    (NAME, [("x.requires_grad_()", "x.requires_grad = True"), ("group.send(x.grad,", "group.send(x.grad.clone(),")]),
]  # fmt: skip
