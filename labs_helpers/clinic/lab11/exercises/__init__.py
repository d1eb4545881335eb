"""The exercises of lab 11, one file each: stub, answer and reference in one."""
