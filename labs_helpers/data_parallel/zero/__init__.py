"""ZeRO: data-parallel training whose ranks partition the model states instead of replicating them; see lab 09.

Rajbhandari et al., ZeRO: Memory Optimizations Toward Training Trillion Parameter Models, 2020. Each of N ranks holds:

               parameters   gradients   optimizer states
    stage 1    all          all         1/N
    stage 2    all          1/N         1/N
    stage 3    1/N          1/N         1/N

    zero = ZeRO2(model, torch.optim.AdamW, lr=3e-4)         # zero.stage2; replaces AdamW(model.parameters(), lr=3e-4)
    loss = model(x).mean(); loss.backward()                 # each rank uses its own part of the batch
    clip_gradients(zero, 1.0); zero.step(); zero.zero_grad()

stage1.py, stage2.py, and stage3.py implement the stages, and optimizer.py what they share. They build on flat memory
and its partition (partition.py, bucket.py), the optimizer's pieces of it (owned.py), collectives that overlap with
compute (collectives.py, gather.py, reduction.py), and stage 3's units and their order (unit.py, order.py). clip.py
clips, state.py saves checkpoints for any number of ranks, and memory.py counts bytes.
"""
