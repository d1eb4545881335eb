"""Made-up records of ranks that follow a model exactly, so the findings are known."""

from __future__ import annotations

from labs_helpers.data_parallel.study.compression import HOOKS, MEAN, OPTIMIZERS
from labs_helpers.data_parallel.study.offload import WAYS
from labs_helpers.data_parallel.study.replicas import TORCH, WRAPPERS
from labs_helpers.data_parallel.study.stage_memory import MASTER, STAGES
from labs_helpers.data_parallel.study.stages import STAGE_OF, TORCHS
from labs_helpers.planner.accounting import states

COUNT, BATCH, LENGTH = 3_540_000, 2, 128
LINKS = {"1 Gb/s": (100.0, 8.0, 2), "30 Gb/s": (60.0, 0.3, 2), "1 node": (40.0, 0.2, 1)}  # α in µs, β in ns, nodes
FORWARD, BACKWARD, UPDATE = 15.0, 30.0, 5.0  # ms per sequence, per sequence, and per step
PRICE = {"naive": 1.0, "flat": 0.6, "overlapped": 0.5, "bucketed": 0.3, TORCH: 0.35, "no synchronisation": 0.0}
FLOAT32 = "autocast over float32"


def about(link, batch=BATCH, ranks=2, machine="4-core CPU"):
    nodes = LINKS[link][2]
    return {
        "study": "data-parallel", "link": link, "asked": "1gbit" if link == "1 Gb/s" else None, "nodes": nodes,
        "ranks_per_node": ranks // nodes, "ranks": ranks, "backend": "gloo", "dtype": "float32", "size": "mini",
        "parameters": COUNT, "gradient_bytes": 4 * COUNT, "batch": batch, "length": LENGTH, "on": {"machine": machine},
    }  # fmt: skip


def naive_ms(link):
    """Return the cost of all gradients one after another, in 40 messages."""
    alpha, beta, _ = LINKS[link]
    return 1e-3 * 40 * alpha + 1e-6 * beta * 4 * COUNT


def times(step, alone):
    return {"step_ms": step, "step_p20_ms": 0.97 * step, "step_p80_ms": 1.04 * step, "runs": 5, "alone_ms": alone}


def step(link, wrapper, batch=BATCH):
    alone = (FORWARD + BACKWARD) * batch + UPDATE
    exposed = PRICE[wrapper] * naive_ms(link)
    phases = {"forward_ms": FORWARD * batch, "backward_ms": BACKWARD * batch, "finish_ms": exposed, "update_ms": UPDATE}
    more = {"naive_ms": alone + naive_ms(link), "exposed_ms": exposed, "loss": 5.5, "sent_bytes": 4 * COUNT}
    return {"wrapper": wrapper} | times(alone + exposed, alone) | phases | more


def invented():
    records = []
    for link, (alpha, beta, _) in LINKS.items():
        for ranks in (2, 4) if link == "1 node" else (2,):
            for nbytes in (4**i for i in range(5, 13)):
                call = ranks / 2 * (1e-3 * alpha + 1e-6 * beta * nbytes)
                spread = {"call_p20_ms": 0.9 * call, "call_p80_ms": 1.2 * call, "runs": 20}
                records.append(about(link, ranks=ranks) | {"kind": "all_reduce", "group": "dp", "bytes": nbytes}
                               | {"call_ms": call} | spread)  # fmt: skip
        if link == "1 node":
            continue
        for batch in (8, BATCH):
            records += [
                about(link, batch) | {"kind": "wrapper", "bucket_mb": 1.7} | step(link, w, batch) for w in WRAPPERS
            ]
        for name in ("bucketed", TORCH):
            for part in (64, 16, 4, 1):
                alone = step(link, "no synchronisation")["step_ms"]
                took = alone + naive_ms(link) * (0.3 + 0.1 * abs(part - 4) ** 0.5)
                about_it = {"kind": "bucket", "wrapper": name, "bucket_mb": 13.5 / part, "buckets": part}
                records.append(about(link) | about_it | times(took, alone) | {"naive_ms": alone + naive_ms(link)})
        records += [about(link) | timeline(link, wrapper, rank) for wrapper in WRAPPERS for rank in (0, 1)]
        records += accumulated(link) + compressed(link)
    return records + scaled() + learned() + held() + staged() + offloaded()


def timeline(link, wrapper, rank):
    phases = step(link, wrapper)
    intervals, at = [], 0.0
    for name in ("forward", "backward", "finish", "update"):
        intervals.append(["compute", name, at, at + phases[f"{name}_ms"], None])
        at += phases[f"{name}_ms"]
    if wrapper != "no synchronisation":
        first = FORWARD * BATCH + (BACKWARD * BATCH if wrapper in ("naive", "flat") else 20)
        intervals.append(["communication", "all-reduce", first, at - UPDATE, 4 * COUNT])
    return {
        "kind": "timeline",
        "wrapper": wrapper,
        "rank": rank,
        "source": "marks",
        "step_ms": at,
        "intervals": intervals,
    }


def accumulated(link):
    records = []
    for passes in (1, 2, 4, 8):
        alone = passes * (FORWARD + BACKWARD) * BATCH + UPDATE
        for sync, means in (("last pass", 1), ("every pass", passes)):
            if (passes, sync) != (1, "every pass"):
                took = alone + means * 0.3 * naive_ms(link)
                record = {"kind": "accumulate", "micro_batches": passes, "sync": sync} | times(took, alone)
                records.append(about(link) | record)
    return records


def compressed(link):
    alone = step(link, "no synchronisation")["step_ms"]
    sent = {MEAN: 1.0, "top-k 1%": 0.02, "top-k 10%": 0.2, "int8": 0.25, "PowerSGD": 0.01}
    return [
        about(link)
        | {"kind": "compression", "hook": name, "error_feedback": name != MEAN, "sent_bytes": int(share * 4 * COUNT)}
        | times(alone + 30 * (name != MEAN) + 0.3 * share * naive_ms(link), alone)
        for name, share in sent.items()
    ]


def scaled():
    records = []
    for ranks in (1, 2, 4):
        for mode, batch in (("weak", BATCH), ("strong", 4 * BATCH // ranks)):
            alone = (FORWARD + BACKWARD) * batch + UPDATE
            record = {"kind": "scaling", "mode": mode, "wrapper": "bucketed", "sequences": ranks * batch}
            records.append(about("1 node", batch, ranks) | record | times(alone * (1 + 0.1 * (ranks - 1)), alone))
    return records


def offloaded():
    records = []
    for way, (stage, offload) in WAYS.items():
        update = 60.0 if offload else UPDATE
        phases = {"forward_ms": FORWARD * BATCH, "backward_ms": BACKWARD * BATCH, "update_ms": update}
        crossing = {f"to_{to}_{what}": (8 * COUNT if what == "bytes" else 4.0) * bool(offload)
                    for to in ("cpu", "gpu") for what in ("bytes", "ms")}  # fmt: skip
        took = {"kind": "offload", "way": way, "stage": stage, "offload": offload, "threads": 2, "peak_bytes": 10**8}
        records.append(about("1 node") | took | phases | crossing | times(sum(phases.values()), 0.0))
    return records


def learned():
    records = []
    for optimizer in OPTIMIZERS:
        for name in (MEAN, *HOOKS):
            for feedback in (True, False) if name != MEAN else (False,):
                last = 2.0 if name == MEAN else 2.2 if feedback else 2.5
                losses = [last + 3 * 0.9**number for number in range(40)]
                record = {"kind": "loss_curve", "optimizer": optimizer, "hook": name, "error_feedback": feedback}
                record |= {"steps": 40, "losses": losses, "validation": last, "learning_rate": 1e-3}
                records.append(about("1 node", 4) | record)
    return records


def held():
    records = []
    moments = ["before", "forward, block 0", "loss", "backward, block 0", "after backward", "after the step"]
    for layout in (FLOAT32, MASTER):
        for stage in STAGES if layout == FLOAT32 else STAGES[1:]:
            told = {part.name: part.bytes for part in states(COUNT, stage, 2, layout)}
            for rank in (0, 1):
                record = {"kind": "stage_memory", "stage": stage, "layout": layout, "rank": rank, "moments": moments}
                record |= {f"formula_{part}": size for part, size in told.items()} | {"device_bytes": None}
                gathered = 1e6 if stage in ("ZeRO-3", "SHARD_GRAD_OP") else 0
                bytes_at = {
                    "parameters": [told["parameters"] + gathered * (0 < at < 4) for at in range(6)],
                    "gradients": [told["gradients"] * (at == 4 or stage == "DDP") for at in range(6)],
                    "optimizer": [told["optimizer"] + 1000 * rank] * 6,
                }
                record |= {f"{part}_bytes": sizes for part, sizes in bytes_at.items()} | {"formula_gathered": gathered}
                records.append(about("1 node") | record)
    return records


def staged():
    records = []
    alone = step("1 node", "no synchronisation")["step_ms"]
    for number, (way, stage) in enumerate(STAGE_OF.items()):
        library = "torch" if way in TORCHS else "ours"
        record = {"kind": "stage_step", "way": way, "stage": stage, "library": library, "state_bytes": 10**7}
        records.append(about("1 node") | record | times(alone + 10 * number, alone) | {"sent_bytes": 4 * COUNT})
    return records
