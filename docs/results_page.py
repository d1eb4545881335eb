"""The page of recorded results: each machine's studies, the versions used, and their main figures."""

from collections import defaultdict
from pathlib import Path

from docs.links import REPOSITORY
from labs_helpers.attention import charts as attention
from labs_helpers.collectives import charts as collectives
from labs_helpers.data_parallel import charts as data_parallel
from labs_helpers.draw import figures
from labs_helpers.gemm import charts as gemm
from labs_helpers.measure import results
from labs_helpers.measure.records import RECORDED
from labs_helpers.tensor_parallel.charts import draw_gpus, draw_layouts
from labs_helpers.transformer import charts as transformer

# study → its main figure for one machine's records, drawn as in the labs
MAIN = {
    "attention": attention.draw_speed,
    "collectives": lambda rows: collectives.draw_race(rows, "allreduce"),
    "data-parallel": lambda rows: data_parallel.draw_race(rows, "wrappers"),
    "gemm": lambda rows: gemm.draw_speedup({rows["on.machine"].iloc[0] + RECORDED: rows}),
    "tensor-parallel": lambda rows: draw_gpus(rows) if on_gpus(rows) else draw_layouts(rows),
    "transformer": transformer.draw_sizes,
}

INTRODUCTION = f"""\
The labs' own functions draw the figures below from [results/]({REPOSITORY}/tree/main/results). Each file holds
the records of one study on one machine, and each record says where and when it was measured."""


def on_gpus(rows) -> bool:
    return (rows["on.device"] == "cuda").any()


def write_results(pages: Path) -> None:
    """Write results.md and its pictures in results/."""
    by_machine = defaultdict(dict)
    for path in sorted(results.results_dir().glob("*.jsonl")):
        study, machine, _ = path.name.split(".")
        by_machine[machine][study] = results.load(path)
    (pages / "results").mkdir()
    lines = ["# Recorded results", "", INTRODUCTION, ""]
    for machine, studies in by_machine.items():
        labels = [label for rows in studies.values() for label in rows["on.machine"].dropna()]
        lines += [f"## {labels[0] if labels else machine}", "", "| study | records | measured | PyTorch | Triton |"]
        lines += ["| --- | ---: | --- | --- | --- |"]
        lines += [_row(study, machine, rows) for study, rows in studies.items()]
        for study, rows in studies.items():
            lines += _figure(study, machine, rows, pages)
        lines.append("")
    (pages / "results.md").write_text("\n".join(lines))


def _row(study: str, machine: str, rows) -> str:
    file = f"{REPOSITORY}/blob/main/results/{study}.{machine}.jsonl"
    days = sorted({time[:10] for time in rows["on.time"].dropna()})
    when = " to ".join(dict.fromkeys([days[0], days[-1]])).replace("-", "\N{NON-BREAKING HYPHEN}") if days else ""
    versions = [", ".join(sorted(set(rows[f"on.{name}"].dropna()))) for name in ("torch", "triton")]
    return f"| [{study}]({file}) | {len(rows):,} | {when} | {' | '.join(versions)} |"


def _figure(study: str, machine: str, rows, pages: Path) -> list[str]:
    """Return the study's main figure, if it has one and this machine has its records."""
    if study not in MAIN:
        return []
    try:
        figure = MAIN[study](rows)
    except ValueError as error:
        if "no records" not in str(error):
            raise
        return []
    name = f"results/{study}.{machine}.png"
    (pages / name).write_bytes(figures.png(figure))
    title = figure.get_suptitle() or figure.axes[0].get_title("left")
    return ["", f"![{' '.join(title.split())}]({name})"]
