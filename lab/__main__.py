"""Run the paper's claims as experiments in a simulated world: `python -m lab`."""

from __future__ import annotations

import os
from pathlib import Path

import click

from artoo.cli.commands.options import HELP
from lab.catalogue import NAMES, SIMULATED, experiments
from lab.conducting import Order, conduct
from lab.report import RESULTS, keep, page, write_results


@click.group(context_settings=HELP)
def lab() -> None:
    """Run the paper's claims as experiments. No model is asked: models, tools and time are simulated."""


@lab.command("list")
def list_() -> None:
    """Show the experiments, their claims, and what would refute each."""
    for each in experiments():
        size = "needs --data" if each.data else f"{each.tasks} a cell and seed, {len(each.cells())} cells"
        click.echo(f"{each.name}: {each.title} ({size})")
        for claim in each.claims:
            click.echo(f"  - {claim.text}\n    refuted if {claim.refuted_by}")


@lab.command("run")
@click.argument("name", type=click.Choice(NAMES))
@click.option(
    "--tasks", type=click.IntRange(min=2), help="Jobs a cell and seed; otherwise the experiment's own number."
)
@click.option("--seed", "seeds", type=int, multiple=True, help="Another world of the same kind; may be repeated.")
@click.option("--jobs", type=click.IntRange(min=1), help="Processes; otherwise as many as there are processors.")
@click.option("--data", type=click.Path(exists=True, path_type=Path), help="Public data that the experiment reads.")
@click.option(
    "--kept", type=click.Path(file_okay=False, path_type=Path), help="Folder of rows, to go on after a stop."
)
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), help="Write the pages into this folder.")
def run(
    name: str,
    tasks: int | None,
    seeds: tuple[int, ...],
    jobs: int | None,
    data: Path | None,
    kept: Path | None,
    out: Path | None,
) -> None:
    """Run experiment NAME and print its page, or write it into a folder of pages."""
    try:
        order = Order(name, tasks, seeds or None, data, kept)
        ran = conduct(order, jobs=jobs or os.cpu_count() or 1, told=_told)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    click.echo("\n".join(map(str, keep(out, ran))) if out else page(ran))


@lab.command("report")
@click.option(
    "--tasks", type=click.IntRange(min=2), help="Jobs a cell and seed; otherwise each experiment's own number."
)
@click.option("--jobs", type=click.IntRange(min=1), help="Processes; otherwise as many as there are processors.")
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), default=Path("docs/lab"), show_default=True
)
def report(tasks: int | None, jobs: int | None, out: Path) -> None:
    """Run every experiment that needs no data, and write its page and the table of all claims."""
    for name in SIMULATED:
        for path in keep(out, conduct(Order(name, tasks), jobs=jobs or os.cpu_count() or 1, told=_told)):
            click.echo(path)


@lab.command("results")
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), default=Path("docs/lab"), show_default=True
)
def results(out: Path) -> None:
    """Write the table of all claims again from the stored results, after a claim's consequence was written."""
    if not (out / RESULTS).exists():
        raise click.UsageError(f"there are no results in {out}: run `python -m lab run NAME --out {out}` first")
    click.echo(write_results(out))


def _told(line: str) -> None:
    click.echo(line, err=True)


if __name__ == "__main__":
    lab(prog_name="python -m lab")
