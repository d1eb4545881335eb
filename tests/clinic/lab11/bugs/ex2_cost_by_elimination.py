"""Exercise 2 of lab 11: mistakes that its check has to name, and right answers written differently."""

import inspect

from labs_helpers.clinic.lab11.exercises import ex2_cost_by_elimination

NAME = "cost_by_elimination"
BODY = inspect.getsource(ex2_cost_by_elimination).split("### BEGIN SOLUTION\n")[1].split("    ### END SOLUTION")[0]
FIXED = "2 * step - twice"
RETURN = "return {name: max(0.0, ms) for name, ms in costs.items()}"

BUGS: list = [
    (NAME, "the mean", [("step = min(measure())", "step = sum(s := measure()) / len(s)"),
     ("min(measure(communication=False))", "sum(s := measure(communication=False)) / len(s)")],
     r"communication(.|\n)*the mean of the steps also contains"),
    (NAME, "the first step", [("min(measure())", "measure()[0]"), ("min(measure(communication=False))",
     "measure(communication=False)[0]")], r"the first step is taken"),
    (NAME, "both left out", [("communication=False", "communication=False, loading=False")],
     "both parts are left out; leave out communication alone"),
    (NAME, "swapped", [("communication=False", "loading=???"), ("loading=False", "communication=False"),
     ("loading=???", "loading=False")], "this is the gain without loading"),
    (NAME, "the growth", [(FIXED, "twice - step")], "this is what one batch adds"),
    (NAME, "half", [(FIXED, "step - twice / 2")], "this is half of it"),
    (NAME, "a batch of 4", [("batch=2", "batch=4")], "the time grows by .k − 1. · per_batch"),
    (NAME, "the rest", [("        \"fixed\": 2 * step - twice,\n    }\n",
     "    }\n    costs[\"fixed\"] = step - sum(costs.values())\n")], "the step minus the other two costs"),
    (NAME, "below 0", [(RETURN, "return costs")], "return 0 instead"),
    (NAME, "no sign", [(RETURN, "return {name: abs(ms) for name, ms in costs.items()}")], "has no sign"),
    (NAME, "the whole step again", [("step -", "min(measure()) -")],
     r"the costs are right, but measure was called 7 times; 4(.|\n)*a run is repeated"),
    (NAME, "another batch", [("twice = ", "measure(batch=3)\n    twice = ")], "called 5 times(.|\n)*One thing to try"),
    (NAME, "no batch", [("batch=2", "batch=0")], "whole number from 1 on"),
    (NAME, "a list is no number", [("min(measure())", "measure()")], "TypeError"),
    (NAME, "a tuple", [(RETURN, "return tuple(costs.values())")], "instead of a dict of communication, data, fixed"),
    (NAME, "no return", [(RETURN, "costs")], "a return is missing"),
]  # fmt: skip
SOLVED = """    import numpy as np

    batches = [1, 3]
    times = [np.min(measure(True, True, batch)) for batch in batches]
    per_batch, fixed = np.polyfit(batches, times, 1)
    gains = [times[0] - np.min(measure(*on)) for on in ((False, True), (True, False))]
    return dict(zip(("communication", "data", "fixed"), np.clip([*gains, fixed], 0, None)))
"""
SORTED = """    runs = ({}, {"communication": False}, {"loading": 0}, {"batch": 11})
    step, alone, ready, large = (sorted(measure(**run))[0] for run in runs)
    per_batch = (large - step) / 10
    fixed = step - per_batch if step > per_batch else 0
    return {"data": step - min(step, ready), "fixed": fixed, "communication": step - min(step, alone)}
"""
DIFFERENT: list = [(NAME, [(BODY, SOLVED)]), (NAME, [(BODY, SORTED)])]
