"""One interface to MPI, torch.distributed and practice ranks: collectives, messages, buckets, gradients' means."""
