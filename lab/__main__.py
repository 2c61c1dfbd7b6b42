"""Run the paper's claims as experiments in a simulated world: `python -m lab`."""

from __future__ import annotations

import os
from pathlib import Path

import click

from artoo.cli.commands.options import HELP


@click.group(context_settings=HELP)
def lab() -> None:
    """Run the paper's claims as experiments. No model is asked: models, tools and time are simulated."""


@lab.command("list")
def list_() -> None:
    """Show the experiments, their claims, and what would refute each."""
    from lab.catalogue import EXPERIMENTS

    for each in EXPERIMENTS:
        size = "needs --data" if each.data else f"{each.tasks} a cell, {len(each.cells())} cells"
        click.echo(f"{each.name}: {each.title} ({size})")
        for claim in each.claims:
            click.echo(f"  - {claim.text}\n    refuted if {claim.refuted_by}")


data_option = click.option(
    "--data",
    type=click.Path(exists=True, path_type=Path),
    help="Public data that the experiment reads; its page says how to get it.",
)


@lab.command("run")
@click.argument("name")
@click.option("--tasks", type=click.IntRange(min=2), help="Jobs a cell; the experiment's own number otherwise.")
@click.option("--seed", type=int, help="Another world of the same kind.")
@click.option("--jobs", type=click.IntRange(min=1), help="Processes; as many as there are processors otherwise.")
@data_option
def run(name: str, tasks: int | None, seed: int | None, jobs: int | None, data: Path | None) -> None:
    """Run experiment NAME and print its page."""
    from lab.catalogue import EXPERIMENTS
    from lab.conducting import Order, conduct
    from lab.report import page

    names = [each.name for each in EXPERIMENTS]
    if name not in names:
        raise click.BadParameter(f"there is no experiment {name!r}; there are: {', '.join(names)}")
    try:
        ran = conduct(Order(name, tasks, seed, data), jobs=jobs or os.cpu_count() or 1, told=_told)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    click.echo(page(ran), nl=False)


@lab.command("report")
@click.argument("names", nargs=-1)
@click.option("--tasks", type=click.IntRange(min=2), help="Jobs a cell; each experiment's own number otherwise.")
@click.option("--jobs", type=click.IntRange(min=1), help="Processes; as many as there are processors otherwise.")
@click.option("--claims", is_flag=True, help="Run nothing: write the claims of what was not run yet.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("docs/lab"),
    show_default=True,
    help="Folder of the pages.",
)
@data_option
def report(
    names: tuple[str, ...], tasks: int | None, jobs: int | None, claims: bool, out: Path, data: Path | None
) -> None:
    """Run all experiments that need no data (or NAMES) and write their pages and the summary."""
    from lab.catalogue import EXPERIMENTS
    from lab.conducting import Order, conduct_all
    from lab.report import keep, state_claims

    known = [each.name for each in EXPERIMENTS]
    if unknown := [name for name in names if name not in known]:
        raise click.BadParameter(f"there is no experiment {unknown[0]!r}; there are: {', '.join(known)}")
    if claims:
        click.echo("\n".join(map(str, state_claims(out))))
        return
    orders = [
        Order(name, tasks, data=data) for name in names or [each.name for each in EXPERIMENTS if each.data is None]
    ]
    try:
        runs = conduct_all(orders, jobs=jobs or os.cpu_count() or 1, told=_told)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    for ran in runs:
        for path in keep(out, ran):
            click.echo(path)


def _told(line: str) -> None:
    click.echo(line, err=True)


if __name__ == "__main__":
    lab(prog_name="python -m lab")
