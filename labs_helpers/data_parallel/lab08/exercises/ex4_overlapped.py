"""Lab 08, exercise 4: an all-reduce starts as soon as its gradient is there."""

import torch.distributed as dist


def overlapped(model, group):
    """Starts an all-reduce of each gradient while backward goes on; returns finish.

        finish = overlapped(model, group)
        loss(model).backward(); finish(); optimizer.step()

    After finish() every trained parameter's .grad is the mean over the ranks of `group`, and the
    next step may begin. Each gradient is sent once per step, during backward. Here every rank uses
    every trained parameter in every step, and gradients arrive in the same order on all ranks.
    """
    under_way = []  # what finish() needs of each all-reduce that has been started

    def send(parameter):
        """Called by autograd when parameter.grad is complete."""
        # 1. dist.all_reduce(…, async_op=True) returns a handle at once.
        ### BEGIN SOLUTION
        work = dist.all_reduce(parameter.grad, group=group, async_op=True)
        under_way.append((parameter, work))
        ### END SOLUTION

    def finish():
        # 2. When may a result be read? What has to be left for the next step?
        ### BEGIN SOLUTION
        for parameter, work in under_way:
            work.wait()
            parameter.grad /= dist.get_world_size(group)
        under_way.clear()
        ### END SOLUTION

    # 3. parameter.register_post_accumulate_grad_hook(send): for which parameters?
    ### BEGIN SOLUTION
    for parameter in model.parameters():
        if parameter.requires_grad:
            parameter.register_post_accumulate_grad_hook(send)
    ### END SOLUTION
    return finish
