"""Exercise 8 of lab 08: mistakes that its check has to name, and right answers written differently."""

NAME = "accumulated"
SUM = "    samples = sum(len(batch) for batch in micro_batches)\n"
SYNC = "        with no_sync():\n            (loss_of(batch) * len(batch) / samples).backward()\n"
LAST = "    (loss_of(last) * len(last) / samples).backward()\n"
FINISH = "    finish()\n"
CLIP = "    return torch.nn.utils.clip_grad_norm_(parameters, max_norm)\n"


def scaled(of_batch: str, of_last: str) -> list[tuple[str, str]]:
    return [("(loss_of(batch) * len(batch) / samples)", of_batch), ("(loss_of(last) * len(last) / samples)", of_last)]


BUGS: list = [
    (
        NAME,
        "all forward passes first",
        [
            (SYNC, "        with no_sync():\n            losses.pop(0).backward()\n"),
            (SUM, SUM + "    losses = [loss_of(batch) * len(batch) / samples for batch in micro_batches]\n"),
            (LAST, "    losses.pop(0).backward()\n"),
        ],
        "calls loss_of before the previous micro-batch",
    ),
    (
        NAME,
        "the list is emptied",
        [("last = micro_batches[-1]", "last = micro_batches.pop()")],
        "has changed micro_batches",
    ),
    (NAME, "losses added up", scaled("loss_of(batch)", "loss_of(last)"), "the losses are added without weights"),
    (
        NAME,
        "each the same",
        scaled("(loss_of(batch) / len(micro_batches))", "(loss_of(last) / len(micro_batches))"),
        "every micro-batch has the same weight",
    ),
    (
        NAME,
        "samples not divided",
        scaled("(loss_of(batch) * len(batch))", "(loss_of(last) * len(last))"),
        "not divided by the number of all samples",
    ),
    (
        NAME,
        "divided by samples",
        scaled("(loss_of(batch) / samples)", "(loss_of(last) / samples)"),
        "loss_of already returns a micro-batch's mean",
    ),
    (
        NAME,
        "divided by its own",
        scaled("(loss_of(batch) / len(batch))", "(loss_of(last) / len(last))"),
        "loss_of already returns a mean",
    ),
    (
        NAME,
        "the last unscaled",
        [("(loss_of(last) * len(last) / samples)", "loss_of(last)")],
        "the last micro-batch is not scaled",
    ),
    (
        NAME,
        "the last alone scaled",
        [("(loss_of(batch) * len(batch) / samples)", "loss_of(batch)")],
        "only the last micro-batch is scaled",
    ),
    (
        NAME,
        "every pass sends",
        [(SYNC, "        (loss_of(batch) * len(batch) / samples).backward()\n")],
        "run all but the last one inside|without no_sync",
    ),
    (
        NAME,
        "every pass silent",
        [(LAST, "    with no_sync():\n        (loss_of(last) * len(last) / samples).backward()\n")],
        "the last backward pass is in no_sync",
    ),
    (NAME, "finish in the loop", [(SYNC, SYNC + "        finish()\n")], "call finish.. after"),
    (NAME, "no finish", [(FINISH, "")], "finish.. is missing"),
    (
        NAME,
        "clipped before finish",
        [
            (
                FINISH + CLIP,
                "    norm = torch.nn.utils.clip_grad_norm_(parameters, max_norm)\n    finish()\n    return norm\n",
            )
        ],
        "clip the mean, after finish",
    ),
    (
        NAME,
        "not clipped",
        [(CLIP, "    return torch.cat([p.grad.flatten() for p in parameters]).norm()\n")],
        "nothing is clipped",
    ),
    (
        NAME,
        "clipped by value",
        [
            (
                CLIP,
                (
                    "    norm = torch.cat([p.grad.flatten() for p in parameters]).norm()\n    "
                    "torch.nn.utils.clip_grad_value_(parameters, max_norm)\n    return norm\n"
                ),
            )
        ],
        "each value is clipped",
    ),
    (
        NAME,
        "clipped one by one",
        [
            (
                CLIP,
                (
                    "    norm = torch.cat([p.grad.flatten() for p in parameters]).norm()\n    for p "
                    "in parameters:\n        torch.nn.utils.clip_grad_norm_([p], max_norm)\n    return norm\n"
                ),
            )
        ],
        "each parameter is clipped by itself",
    ),
    (NAME, "no norm", [("    return torch.nn", "    torch.nn")], "the norm is not returned"),
    (
        NAME,
        "norm after",
        [(CLIP, CLIP.replace("return ", "") + "    return torch.cat([p.grad.flatten() for p in parameters]).norm()\n")],
        "the norm after clipping",
    ),
    (
        NAME,
        "always scaled",
        [
            (
                CLIP,
                (
                    "    norm = torch.cat([p.grad.flatten() for p in parameters]).norm()\n    for p "
                    "in parameters:\n        p.grad *= max_norm / norm\n    return norm\n"
                ),
            )
        ],
        "although the norm is smaller",
    ),
    (
        NAME,
        "averaged again",
        [(FINISH, FINISH + "    import torch.distributed\n    for p in parameters:\n        p.grad /= 2\n")],
        "averaged once more|got ",
    ),
    (
        NAME,
        "one backward pass",
        [
            (SYNC, "        pass\n"),
            (LAST, "    sum(loss_of(b) * len(b) / samples for b in micro_batches).backward()\n"),
        ],
        "forward and backward before the next micro-batch",
    ),
    (
        NAME,
        "cleared in between",
        [(SYNC, SYNC + "            for p in parameters:\n                p.grad = None\n")],
        "gradients are cleared in between",
    ),
    (
        NAME,
        "clipped each time",
        [(SYNC, SYNC + "            torch.nn.utils.clip_grad_norm_(parameters, max_norm)\n")],
        "clipped after each micro-batch",
    ),
    (NAME, "last forgotten", [(LAST, "")], "finish|passes"),
    (NAME, "clipped to 1", [("parameters, max_norm)", "parameters, 1.0)")], "clipped to 1"),
    (
        NAME,
        "the norm before finish",
        [
            (FINISH, "    norm = torch.nn.utils.get_total_norm([p.grad for p in parameters])\n    finish()\n"),
            (CLIP, CLIP.replace("return ", "") + "    return norm\n"),
        ],
        "nan(.|\n)*read before finish",
    ),
    (NAME, "the last is left out", [(LAST, "")], "a micro-batch is left out"),
    (
        NAME,
        "the first one's samples",
        scaled(
            "(loss_of(batch) * len(micro_batches[0]) / samples)", "(loss_of(last) * len(micro_batches[0]) / samples)"
        ),
        "by the samples of the first",
    ),
    (
        NAME,
        "the sum of norms",
        [
            (
                CLIP,
                "    norm = sum(p.grad.norm() for p in parameters)\n"
                + CLIP.replace("return ", "")
                + "    return norm\n",
            )
        ],
        "the sum of the parameters' norms",
    ),
]
DIFFERENT: list = [
    (
        NAME,
        [
            (
                "    for batch in micro_batches[:-1]:\n" + SYNC + "    last = micro_batches[-1]\n" + LAST,
                (
                    "    import contextlib\n    for i, batch in enumerate(micro_batches):\n        "
                    "last = i == len(micro_batches) - 1\n        with contextlib.nullcontext() "
                    "if last else no_sync():\n            loss = loss_of(batch) * (len(batch) / "
                    "samples)\n            loss.backward()\n"
                ),
            ),
        ],
    ),
    (
        NAME,
        [
            (SUM, "    samples = torch.cat(micro_batches).shape[0]\n"),
            ("    last = micro_batches[-1]\n", "    *_, last = micro_batches\n"),
            (CLIP, "    return float(torch.nn.utils.clip_grad_norm_(parameters, max_norm))\n"),
        ],
    ),
    (
        NAME,
        [
            (
                CLIP,
                (
                    "    norm = torch.linalg.vector_norm(torch.stack([p.grad.norm() for p in "
                    "parameters]))\n    if norm > max_norm:\n        for p in parameters:\n      "
                    "      p.grad.mul_(max_norm / norm)\n    return norm\n"
                ),
            )
        ],
    ),
    (
        NAME,
        [
            (
                "    for batch in micro_batches[:-1]:\n" + SYNC,
                (
                    "    with no_sync():\n        for batch in micro_batches[:-1]:\n            "
                    "(loss_of(batch) * len(batch) / samples).backward()\n"
                ),
            )
        ],
    ),
]
