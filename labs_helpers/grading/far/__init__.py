"""Run an answer in its own process, and call it from a judge that never executes it.

The check and the hidden inputs run in the judge. They call a `FarFunction` (judge.py): its arguments travel to the
answer's process (answer.py) as data, over a channel (wire.py) whose far end decides nothing, and its results return as
data. Memory that both sides know has the same contents on both whenever a message has arrived (memory.py). The judge
launches an answer's kernels from the text that it checked (kernels.py), and so measures what they load, store and
return where the answer cannot interfere.
"""
