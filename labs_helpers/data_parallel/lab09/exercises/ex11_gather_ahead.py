"""Lab 09, exercise 11: ZeRO-3 with prefetch, weights that are gathered while another module computes."""

from functools import partial

import torch.distributed as dist


def gather_ahead(modules, wholes, shards, group):
    """finish(): each module's weights are gathered while the module before it computes.

    modules: in the order of the forward pass. wholes: for each (n,), its weights' memory as in
    exercise 7, all freed. shards: for each this rank's part, perhaps float32 master weights of a
    bfloat16 module; what is sent has whole's dtype. When a module computes, in either pass, two
    wholes have memory: its own, which has arrived, and that of the module that computes next,
    whose all-gather is under way (async_op=True) and not waited for yet; no others have any.
    The last whole stays from its forward to its backward pass: 2 · len(modules) − 1 all-gathers
    per step. finish() is called after each backward pass; then no whole has memory.
    """
    last, started = len(modules) - 1, {}

    def start(number):
        # 1. Memory, and an all-gather under way. What does the wait need?
        ### BEGIN SOLUTION
        whole = wholes[number]
        whole.untyped_storage().resize_(whole.nbytes)
        mine = shards[number].detach().to(whole.dtype)
        started[number] = dist.all_gather_into_tensor(whole, mine, group=group, async_op=True)
        ### END SOLUTION

    def before_forward(number, *_):  # 2. Nobody has started the first one. 3. And the next?
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
        # 5. What has backward passed, what is here, what is next?
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
