"""ZeRO: data-parallel training in which ranks stop holding the same thing several times; lab 09.

Rajbhandari et al., ZeRO: Memory Optimizations Toward Training Trillion Parameter Models, 2020. What each of N ranks
holds:

               parameters   gradients   optimizer's states
    stage 1    all          all         1/N
    stage 2    all          1/N         1/N
    stage 3    1/N          1/N         1/N

    zero = ZeRO2(model, torch.optim.AdamW, lr=3e-4)         # zero.stage2; instead of AdamW(model.parameters(), lr=3e-4)
    loss = model(x).mean(); loss.backward()                 # each rank with its own part of the batch
    clip_gradients(zero, 1.0); zero.step(); zero.zero_grad()

stage1.py, stage2.py and stage3.py say what is particular to each; optimizer.py has what they share. Below them: flat
memory and how it is cut (partition.py, bucket.py), what the optimizer is given of it (owned.py), collectives beside the
computation (collectives.py, gather.py, reduction.py), stage 3's units and their order (unit.py, order.py). Beside them:
clip.py, state.py (checkpoints for any number of ranks), memory.py (bytes held).
"""
