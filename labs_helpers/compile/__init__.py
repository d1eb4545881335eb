"""From a kernel to machine code: its source, its launches, ahead-of-time builds for any GPU, and a report of them."""
