"""The functions that test_curves.py runs on four ranks: whole trainings, several at the same time. Pickled by value."""

import shutil
import sys
import traceback

import cloudpickle

from tests.tensor_parallel import ranks as on_ranks

cloudpickle.register_pickle_by_value(sys.modules[__name__])
cloudpickle.register_pickle_by_value(on_ranks)

STEPS, SAVED = 6, 4  # with a checkpoint each two steps, these two stay


def settings(dp, tp, dtype="float64", data="text", **others):
    """Of a model that eight ranks can share, and of which a step takes milliseconds; digits take longer, and fewer."""
    from labs_helpers.training.settings import Settings, make_config

    length = 64 if data == "digits" else 16
    config = make_config(data, length, width=others.pop("width", 32), heads=8)
    given = {
        "steps": STEPS if data == "text" else 3,
        "batch": 16,
        "length": length,
        "every": 2 if "checkpoint" in others else None,
    }
    return Settings(dp, tp, data, config, dtype=dtype, bucket_mb=0.05, **given | others)


def ranks_of(task):
    return 1 if callable(task) else task.dp * task.pp * task.tp


def in_rounds(tasks, ranks=4):
    """{name: task} as several such dicts, each of as many tasks as there are ranks for."""
    rounds = [{}]
    for name, task in tasks.items():
        if sum(map(ranks_of, (*rounds[-1].values(), task))) > ranks:
            rounds.append({})
        rounds[-1][name] = task
    return rounds


def several(comm, rounds):
    """{name: result} of this rank. A round: tasks by name that are done at the same time, settings to train with or
    functions to call on a rank."""
    on_ranks.import_torch()
    found = {}
    for tasks in rounds:
        names = [name for name, task in tasks.items() for _ in range(ranks_of(task))]
        names += [None] * (comm.size - len(names))
        mine = names[comm.rank]
        group = comm.Split(color=names.index(mine), key=comm.rank)
        if mine is not None:
            found[mine] = tasks[mine]() if callable(tasks[mine]) else outcome(group, tasks[mine])
        on_ranks.wait_for_all(comm)
    return found


def outcome(comm, wanted):
    """What one training gives: a dict of its report and of what rank 0 said, or the refusal or traceback, as text."""
    from labs_helpers.training import train
    from labs_helpers.training.settings import Refused

    said = []
    try:
        report = train(comm, wanted, said.append)
    except Refused as refused:
        return f"Refused: {refused}"
    except Exception:
        return traceback.format_exc()
    return report._asdict() | {"said": said}


def copy(folder, other, cut=None):
    """The folder's checkpoints in another folder, without the last one, or with only `cut` bytes of it."""
    shutil.copytree(folder, other)
    last = max(other.iterdir())
    if cut is None:
        last.unlink()
    else:
        last.write_bytes(last.read_bytes()[:cut])


def plain_loop():
    """`settings(1, 1, data="digits")` by lab 01's transformer and nothing else: (losses, what `validate` gives)."""
    import torch
    import torch.nn.functional as F

    from labs_helpers.training.datasets import Digits, digit_sequences
    from labs_helpers.training.model_part import first_weights
    from labs_helpers.transformer import Transformer
    from labs_helpers.transformer.train import adamw, learning_rate

    wanted = settings(1, 1, data="digits")
    data = Digits(digit_sequences(), wanted.batch, wanted.seed)
    model = Transformer(wanted.config).double()
    model.load_state_dict(first_weights(wanted))
    optimizer, losses = adamw(model, wanted.lr), []
    for step in range(wanted.steps):
        tokens, targets = map(torch.from_numpy, data.batch(step))
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, wanted.steps, wanted.lr)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(tokens).flatten(0, 1), targets.flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    tokens, targets = map(torch.from_numpy, data.validation)
    with torch.no_grad():
        logits = model(tokens)
    right = (logits[:, -1].argmax(-1) == targets[:, -1]).double().mean().item()
    loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten()).item()
    return losses, {"validation_loss": loss, "validation_accuracy": right}
