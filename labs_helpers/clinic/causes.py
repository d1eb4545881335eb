"""What can be wrong with a training job: each cause, and what to change."""

HEALTHY = "healthy"
CAUSES = {
    HEALTHY: ("nothing", "nothing"),
    "starved loader": ("the loader takes longer than the step", "prepare the data once, or load with more workers"),
    "waiting for values": ("the program reads values in every step", "keep them on the device; read them now and then"),
    "printing": ("the program prints tensors in every step", "print numbers, now and then"),
    "tiny batch": ("the batch is too small for the device", "use a larger batch, with a learning rate that suits it"),
    "small messages": ("each gradient is sent on its own", "send them together, in buckets"),
    "across nodes": ("the groups that send most lie across nodes", "order the mesh so that they lie inside nodes"),
    "straggler": ("one rank has more work than the others", "give all ranks the same work"),
    "leak": ("tensors of past steps stay alive", "detach what you keep"),
    "activations": ("the activations do not fit", "checkpoint them"),
    "fragmentation": ("memory is free, but in holes too small", "pad to few shapes; let the segments be expandable"),
    "overflow": ("gradients overflow in every step", "let the factor of the loss become smaller"),
    "recompilation": ("a compiled part sees a new shape in every step", "pad to few shapes, or compile a dynamic one"),
    "diverging replicas": ("the replicas are not equal", "average all gradients; start from the same weights"),
    "same data": ("all ranks read the same data", "give each rank its own part"),
    "deadlock": ("a rank does not take part in a collective", "call it on all ranks, or on none"),
    "dead rank": ("a rank's process has ended", "find out who ended it; restart from a checkpoint"),
}
