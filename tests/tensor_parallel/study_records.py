"""Made-up records of ranks that follow α–β exactly, so their findings are known."""

from __future__ import annotations

from dataclasses import asdict

from labs_helpers.collectives.cost_model import Costs
from labs_helpers.tensor_parallel import study, traffic
from labs_helpers.tensor_parallel.placement import nodes_of_groups
from labs_helpers.tensor_parallel.predict import MODEL, communication_seconds

INSIDE = Costs(1e-6, 1e-10, 1.5e-10, 8e-11)
LINKS = {"1 Gb/s": (Costs(1e-5, 8e-9), 2), "20 Gb/s": (Costs(8e-6, 4e-10), 2), "shared memory": (None, 1)}
NS_PER_TOKEN = 1e5  # of compute with tp 1; a fifth of it is the same on every rank


def alone_ms(length, variant):
    replicated = 0.2 if not variant.sequence_parallel else 0.2 / variant.tp
    tokens = study.BATCH // variant.dp * length
    return 1e-6 * NS_PER_TOKEN * tokens * (0.8 / variant.tp + replicated)


def invented(machine="4-core CPU"):
    """A record per variant, link and length as study.measure makes them, and what predictions are made from."""
    records = []
    for link, (cable, nodes) in LINKS.items():
        per_node = 8 // nodes
        same = {"study": study.STUDY.name, "link": link, "asked": link if nodes > 1 else None, "nodes": nodes}
        same |= {"ranks_per_node": per_node, "on": {"machine": machine}}
        for n in (8 * 4**i for i in range(11)):
            records.append(same | {"kind": "ping_pong", "ranks": 8, "together": True, "bytes": n,
                                   "median_us": 1e6 * (INSIDE.alpha + n * INSIDE.beta)})  # fmt: skip
            for operation, rate in (("reduce", INSIDE.gamma), ("copy", INSIDE.copy)):
                records.append(same | {"kind": "local", "ranks": 8, "operation": operation, "bytes": n,
                                       "median_us": 1e6 * n * rate})  # fmt: skip
        if cable:
            records.append(same | {"kind": "link", "bytes": 2**21, "alpha_us": 1e6 * cable.alpha,
                                   "beta_ns": 1e9 * cable.beta, "rate_Gbps": 8e-9 / cable.beta})  # fmt: skip
        for length, variants in ((study.LENGTH, study.LAYOUTS + study.OTHERS), (study.SHORT, study.LAYOUTS)):
            task = {name: getattr(study.CONFIG, name) for name in MODEL} | {"batch": study.BATCH, "length": length}
            here = [variant for variant in variants if nodes > 1 or variant.placement == "inside"]
            records += [same | task | step(variant, length, per_node, cable) for variant in here]
            if nodes == 1 and length == study.LENGTH:
                records += [same | task | count(variant) for variant in here]
    return records


def step(variant, length, per_node, cable):
    nodes = nodes_of_groups(variant.dp, variant.tp, variant.placement, per_node)
    groups = {"tp": (variant.tp, nodes["tp"]), "dp": (variant.dp, nodes["dp"])}
    how = {"scheme": variant.scheme, "sequence_parallel": variant.sequence_parallel}
    inside = communication_seconds(study.CONFIG, study.BATCH, length, groups, per_node, INSIDE, cable, **how)
    alone = alone_ms(length, variant)
    step_ms = alone + 1e3 * sum(inside.values())
    return {
        "kind": "step", **asdict(variant), "tp_nodes": nodes["tp"], "dp_nodes": nodes["dp"], "loss": 5.5,
        "alone_ms": alone, "step_ms": step_ms, "step_p20_ms": 0.97 * step_ms, "step_p80_ms": 1.05 * step_ms,
        **{f"{name}_ms": 1e3 * seconds for name, seconds in inside.items()},
    }  # fmt: skip


def count(variant, off=0):
    """off: bytes that were counted on rank 3 and are not in the formula."""
    how = {"scheme": variant.scheme, "sequence_parallel": variant.sequence_parallel}
    sequences = study.BATCH // variant.dp
    rows = traffic.step_traffic(study.CONFIG, sequences, study.LENGTH, variant.tp, variant.dp, **how)
    record = {"kind": "count", **asdict(variant), "buckets": 1}
    for group in ("tp", "dp"):
        sent = traffic.bytes_sent([row for row in rows if row.group == group], variant.tp, variant.dp)
        record |= {f"{group}_bytes_by_formula": sent, f"{group}_bytes_by_rank": [sent] * 8}
    record["tp_bytes_by_rank"][3] += off
    mine = 4 * traffic.parameters_per_rank(study.CONFIG, variant.tp)
    held = {"parameter_bytes": mine, "gradient_bytes": mine, "optimizer_bytes": 2 * mine}
    return record | held | {"activation_bytes": int(1e9 * alone_ms(study.LENGTH, variant))}


def gpu_race(machine="NVIDIA H200"):
    """Records of gpu_race.py on four GPUs: all-reduces of 20 µs and 400 GB/s; ours in 0.9 of the others' time."""
    about = {
        "study": study.STUDY.name,
        "kind": "gpu_step",
        "world_size": 4,
        "dtype": "bfloat16",
        "batch": 8,
        "length": 2048,
    }
    about |= {name: getattr(study.CONFIG, name) for name in MODEL} | {"on": {"machine": machine}}
    records = []
    for dp, tp in ((4, 1), (2, 2), (1, 4)):
        layout = about | {"dp": dp, "tp": tp}
        alone = 100 / 4 * (1 + 0.05 * tp)

        def timed(library, ms, compiled=False, average=False, sequence_parallel=False, layout=layout, whole=False):
            ms = 0.7 * ms if compiled else ms
            how = {"library": library, "attention": "sdpa", "compiled": compiled, "average": average, "whole": whole}
            times = {"step_ms": ms, "step_p20_ms": 0.99 * ms, "step_p80_ms": 1.02 * ms}
            return layout | how | times | {"sequence_parallel": sequence_parallel}

        for compiled in (False, True):
            spoken = alone + sum(
                row.calls * (0.02 + row.payload / 4e8)
                for row in traffic.step_traffic(study.CONFIG, 8 // dp, 2048, tp, dp, 2)
                if row.group == "tp"
            )
            records.append(timed("ours", spoken, compiled))
            if tp > 1:
                records += [
                    timed("parallelize_module", spoken / 0.9, compiled),
                    timed("compute alone", alone, compiled),
                ]
                records += [timed(name, ms, compiled, sequence_parallel=True)
                            for name, ms in (("ours", 0.95 * spoken), ("parallelize_module", spoken))]  # fmt: skip
            if dp > 1:
                records.append(timed("ours", spoken + 3, compiled, average=True))
        for group, ranks in (("tp", tp), ("dp", dp)):
            records += [layout | {"kind": "all_reduce", "group": group, "ranks": ranks, "bytes": 4**i,
                                  "call_ms": 0.02 + 4**i / 4e8} for i in range(5, 15) if ranks > 1]  # fmt: skip
    return records
