"""The exercises of lab 10, one file each: stub, answer and reference in one."""
