"""Lab 09, exercise 11: ZeRO-3 with prefetching."""

from functools import partial

import torch.distributed as dist


def gather_ahead(modules, wholes, shards, group):
    """Install hooks that gather each module's weights one module ahead, and return finish().

    modules: in the order of the forward pass. wholes: one tensor (n,) per module, the memory of
    its weights as in exercise 7, all freed. shards: this rank's part of each; they may be float32
    master weights of bfloat16 modules, but send them in the dtype of whole. While a module
    computes, in either pass, only two wholes have memory: its own, which has arrived, and that of
    the module that computes next, whose all-gather has started (async_op=True) but has not been
    waited for. The last whole stays between its forward and its backward pass, so a step has
    2 · len(modules) − 1 all-gathers. Call finish() after each backward pass; it frees the rest.
    """
    last, started = len(modules) - 1, {}

    def start(number):
        # 1. Allocate memory and start the all-gather. What does the wait need later?
        ### BEGIN SOLUTION
        whole = wholes[number]
        whole.untyped_storage().resize_(whole.nbytes)
        mine = shards[number].detach().to(whole.dtype)
        started[number] = dist.all_gather_into_tensor(whole, mine, group=group, async_op=True)
        ### END SOLUTION

    def before_forward(number, *_):  # 2. Who starts module 0's gather? 3. Start the next.
        ### BEGIN SOLUTION
        if number == 0:
            start(0)
        started.pop(number).wait()
        if number < last:
            start(number + 1)
        ### END SOLUTION

    def after_forward(number, *_):
        ### BEGIN SOLUTION
        if number < last:
            wholes[number].untyped_storage().resize_(0)
        ### END SOLUTION

    def before_backward(number, *_):
        # 4. Which whole can be freed, which must have arrived, and which comes next?
        ### BEGIN SOLUTION
        if number < last:
            wholes[number + 1].untyped_storage().resize_(0)
            started.pop(number).wait()
        if number > 0:
            start(number - 1)
        ### END SOLUTION

    def finish():
        ### BEGIN SOLUTION
        wholes[0].untyped_storage().resize_(0)
        ### END SOLUTION

    for number, module in enumerate(modules):
        module.register_forward_pre_hook(partial(before_forward, number))
        module.register_forward_hook(partial(after_forward, number))
        module.register_full_backward_pre_hook(partial(before_backward, number))
    return finish
