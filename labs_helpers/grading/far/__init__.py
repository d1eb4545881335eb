"""An answer in a process of its own, called from one that never executes it.

The check and the hidden inputs run in the judge. What they call is a `FarFunction` (judge.py): arguments go to the
answer's process (answer.py) as data, over a channel (wire.py) whose far end holds nothing that decides, and what comes
back is data. Memory that both know is the same on both sides whenever a message has arrived (memory.py). An answer's
kernels are launched by the judge, from the text that was judged (kernels.py): what they load, store and return is
measured where the answer cannot reach.
"""
