"""Data parallelism on torch.distributed: wrappers that average gradients, compression, ZeRO; labs 08 and 09."""
