"""Lab 08, exercise 4: start an all-reduce as soon as its gradient is complete."""

import torch.distributed as dist


def overlapped(model, group):
    """Start an all-reduce of each gradient during backward; return the function `finish`.

        finish = overlapped(model, group)
        loss(model).backward(); finish(); optimizer.step()

    After finish(), every trained parameter's .grad is the mean over the ranks of `group`, and the
    next step may begin. Each gradient is sent once per step, during backward. In this exercise,
    every rank uses every trained parameter in every step, and gradients arrive in the same order on
    all ranks.
    """
    under_way = []  # for each all-reduce that has started: the values that finish() needs

    def send(parameter):
        """Autograd calls this when parameter.grad is complete."""
        # 1. dist.all_reduce(…, async_op=True) returns a handle immediately.
        ### BEGIN SOLUTION
        work = dist.all_reduce(parameter.grad, group=group, async_op=True)
        under_way.append((parameter, work))
        ### END SOLUTION

    def finish():
        # 2. When may you read a result? What must `under_way` contain when the next step begins?
        ### BEGIN SOLUTION
        for parameter, work in under_way:
            work.wait()
            parameter.grad /= dist.get_world_size(group)
        under_way.clear()
        ### END SOLUTION

    # 3. For which parameters do you call parameter.register_post_accumulate_grad_hook(send)?
    ### BEGIN SOLUTION
    for parameter in model.parameters():
        if parameter.requires_grad:
            parameter.register_post_accumulate_grad_hook(send)
    ### END SOLUTION
    return finish
