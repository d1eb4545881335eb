"""Race our schedules against those of torch.distributed.pipelining."""
