"""Lab 11, exercise 2: what a step's parts cost, found by leaving them out."""


def cost_by_elimination(measure):
    """Return a dict with three costs in ms per step: "communication", "data" and "fixed".

    measure(communication=True, loading=True, batch=1) runs some steps of a job and returns the list
    of their times in ms, at least one. False leaves a part out, and batch, a whole number from 1
    on, multiplies the size of the batch. Other programs on this machine make some steps slower, but
    none faster, and they spare at least one step of each run: the fastest step counts.
    "communication" and "data": by how many ms a step gets faster if this part alone (communication,
    or loading) is left out. "fixed": the ms of a step that do not grow with the batch, where the
    whole step, with communication and loading, takes fixed + per_batch · batch.
    No cost is below 0: return 0 instead. Call measure at most four times.
    """
    # 1. Which four runs do you need?
    # 2. Which of the three costs needs a run with a larger batch, and what do two such times tell?
    ### BEGIN SOLUTION
    step = min(measure())
    twice = min(measure(batch=2))  # fixed + 2 per_batch
    costs = {
        "communication": step - min(measure(communication=False)),
        "data": step - min(measure(loading=False)),
        "fixed": 2 * step - twice,
    }
    return {name: max(0.0, ms) for name, ms in costs.items()}
    ### END SOLUTION
