"""Foundations: this machine, timing, the roofline, recorded results and figures."""
