"""Lab 10, exercise 2: one training step of a pipeline without overlap."""

import torch


def naive_step(stage, group, inputs, targets, loss_of, shape):
    """Add the gradients of the mean loss to this rank's parameters; the last rank returns the loss.

    stage: this rank's part of the model, a module. group: the ranks, in the order of their stages;
    group.rank and group.size are numbers. group.send(tensor, to) and group.receive(tensor, source)
    wait for the other rank. A receive fills the tensor, which has the message's shape and dtype:
    each message between stages is float32 and has this `shape`. inputs, targets: lists with one
    entry per micro-batch. Only rank 0 has inputs, integer token numbers, and only the last rank has
    targets; the entries of the other ranks are None. loss_of(output, target) is the mean loss of a
    micro-batch. All micro-batches are equally large, so the mean loss is the mean of theirs; return
    it as a number. There may be one rank, which is then the first and the last.
    """
    total = 0.0
    for i in range(len(inputs)):
        x, target = inputs[i], targets[i]
        # 1. Where does x come from? Autograd must compute the gradient of a received x.
        ### BEGIN SOLUTION
        if group.rank > 0:
            x = torch.empty(shape)
            group.receive(x, group.rank - 1)
            x.requires_grad_()
        ### END SOLUTION
        y = stage(x)
        # 2. The last rank computes the loss and its gradients. The others send y, and continue the
        #    backward pass with the gradient that comes back: y.backward(gradient).
        # 3. Which gradient does the rank before this one need?
        ### BEGIN SOLUTION
        if group.rank == group.size - 1:
            loss = loss_of(y, target) / len(inputs)
            loss.backward()
            total += loss.item()
        else:
            group.send(y, group.rank + 1)
            dy = torch.empty(shape)
            group.receive(dy, group.rank + 1)
            y.backward(dy)
        if group.rank > 0:
            group.send(x.grad, group.rank - 1)
        ### END SOLUTION
    return total
