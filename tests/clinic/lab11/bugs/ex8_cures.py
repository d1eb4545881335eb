"""Exercise 8 of lab 11: mistakes that its check has to name, and right answers written differently."""

NAME = "cures"
DETACH = "        entropy = entropy.detach()\n"
PENDING = "        self.pending.append(loss.detach())\n"
READ = "            self.curve += torch.stack(self.pending).tolist()\n"
CLEAR = "            self.pending.clear()\n"
MEAN = "        self.group.start_mean(*self.gradients()).wait()\n"
DUE = "        if self.steps % self.log_every == 0:\n"
ALL = "torch.stack(self.pending).tolist()"
FLAT = """        flat = torch.cat([g.flatten() for g in self.gradients()])
        flat = self.group.all_reduce(flat)
        for g, new in zip(self.gradients(), flat.split([g.numel() for g in self.gradients()])):
            g.copy_(new.view_as(g))
"""
ONE_BY_ONE = """        for gradient in self.gradients():
            self.group.start_mean(gradient).wait()
"""
DIVIDE = """        for g in self.gradients():
            g.div_(self.group.size)
"""
BY_NUMPY = "            self.curve.extend(float(loss) for loss in torch.stack(self.pending).numpy())\n"

BUGS: list = [
    (NAME, "nothing is detached", [(DETACH, "")], "the entropy still refers to its graph"),
    (NAME, "a number", [(DETACH, "        entropy = entropy.item()\n")], "the program reads it from the device"),
    (
        NAME,
        "the loss is detached",
        [("next_token_loss(logits, y)", "next_token_loss(logits, y).detach()")],
        "detach the entropy alone",
    ),
    (NAME, "no entropy", [("        self.entropies.append(entropy)\n", "")], "got 0 entropies, expected 8"),
    (
        NAME,
        "the logits stay",
        [(DETACH, DETACH + "        self.pending.append(logits.detach())\n")],
        r"bytes stay alive per step",
    ),
    (
        NAME,
        "read in every step",
        [(PENDING, "        self.pending.append(loss.item())\n"), (ALL, "self.pending")],
        "the loss is read in every step",
    ),
    (NAME, "read one by one", [(ALL, "[loss.item() for loss in self.pending]")], "each value is a read of its own"),
    (NAME, "never cleared", [(CLEAR, "")], "are still in self.pending"),
    (NAME, "tensors", [(ALL, "self.pending")], "got tensors, expected floats"),
    (NAME, "the latest first", [(PENDING, "        self.pending.insert(0, loss.detach())\n")], "loss of step 1"),
    (NAME, "the mean", [(ALL, "[torch.stack(self.pending).mean().item()]")], "1 losses, expected 4"),
    (NAME, "a tensor of a list", [("torch.stack(self.pending)", "torch.tensor(self.pending)")], "a read of its own"),
    (
        NAME,
        "a number in a tensor",
        [(DETACH, "        entropy = torch.tensor(entropy.item())\n")],
        "got 8 reads in 8 steps",
    ),
    (
        NAME,
        "the entropy for the loss",
        [("return next_token_loss(logits, y)", "return entropy")],
        "this is the entropy",
    ),
    (NAME, "one entry", [("self.curve += ", "self.curve.append("), (ALL, ALL + ")")], "append adds the whole list"),
    (NAME, "no collective", [(MEAN, "        pass\n")], "no collective averages the gradients"),
    (NAME, "a list", [("*self.gradients()", "self.gradients()")], "passes each tensor of a list"),
    (NAME, "the first", [("*self.gradients()", "self.gradients()[0]")], "unlike others"),
    (NAME, "another order", [("loss, log, average_gradients\n", "log, loss, average_gradients\n")], "the order is"),
    (NAME, "one step late", [(DUE, "        if (self.steps - 1) % self.log_every == 0:\n")], "the curve after step 4"),
    (NAME, "one by one", [(MEAN, ONE_BY_ONE)], "a collective per gradient"),
    (NAME, "nobody waits", [(".wait()", "")], "has to be waited for"),
    (NAME, "the sum", [(MEAN, FLAT)], "the sum over the ranks"),
    (NAME, "twice", [(MEAN, MEAN + DIVIDE)], "divides a second time"),
    (NAME, "copies", [("*self.gradients()", "*[g.clone() for g in self.gradients()]")], "write the mean into it"),
]
DIFFERENT: list = [
    (NAME, [(DETACH, "        entropy = torch.tensor(0.0) + entropy.data\n"), (READ, BY_NUMPY)]),
    (NAME, [(READ, BY_NUMPY.replace(".numpy()", ".cpu().numpy()"))]),
    (NAME, [(MEAN, FLAT.replace("all_reduce(flat)", "all_reduce(flat) / self.group.size"))]),
    (
        NAME,
        [(PENDING, "        self.pending += [loss]\n"), (CLEAR, "            del self.pending[:]\n")],
    ),
]
