"""What a compiler makes of a kernel: its source, its launches, ahead-of-time builds for any GPU, a report of them."""
