"""Write what runs found, as Markdown: a page for each experiment, and one table of all claims."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from artoo.contracts.base import Contract
from lab.catalogue import NAMES, experiment
from lab.conducting import Ran
from lab.experiment import Experiment, Finding, Table

RESULTS, TABLE = "results.json", "results.md"
NOTHING_YET = "nothing yet"


class Claimed(Contract):
    """A claim as it was run. `by_seed`: with each seed alone; empty where there was one."""

    text: str
    refuted_by: str
    holds: bool
    seen: str
    by_seed: tuple[bool, ...] = ()


class Kept(Contract):
    """A run as it is kept: what was run, how long it took, and what came out of its claims."""

    name: str
    tasks: int
    seeds: tuple[int, ...]
    seconds: int
    processor_seconds: int
    claims: tuple[Claimed, ...]


def keep(folder: Path, ran: Ran) -> list[Path]:
    """Write a run's page and pictures, and the table of all claims. Return what was written."""
    folder.mkdir(parents=True, exist_ok=True)
    pages = {f"{picture.name}.svg": picture.svg for picture in ran.outcome.pictures}
    pages[f"{ran.name}.md"] = page(ran)
    kept = [each.model_dump() for each in {**_kept(folder), ran.name: _as_kept(ran)}.values()]
    pages[RESULTS] = json.dumps(kept, indent=1, ensure_ascii=False)
    for name, text in pages.items():
        (folder / name).write_text(text.rstrip("\n") + "\n", encoding="utf-8")
    return [*(folder / name for name in pages), write_results(folder)]


def write_results(folder: Path) -> Path:
    """Write the table of all claims that were run."""
    path = folder / TABLE
    path.write_text(_results(_kept(folder)), encoding="utf-8")
    return path


def page(ran: Ran) -> str:
    """Return a run as Markdown."""
    about, outcome = experiment(ran.name), ran.outcome
    seeds = ", ".join(map(str, ran.seeds))
    parts = [
        f"# {about.title}",
        about.question,
        f"Real: {about.real}. Simulated: {about.simulated}. The world and the rules of comparison are in "
        "[the lab's design](../design/lab.md).",
        f"The data is not part of artoo. {about.data.how}" if about.data is not None else "",
        f"{ran.tasks} {about.unit} a cell{' at most' if about.data else ' and seed'}; "
        f"seed{'s' if len(ran.seeds) > 1 else ''} {seeds}. `{_command(about, ran)}` makes the same figures again "
        "with the same artoo. Another version asks and waits otherwise, which moves some of them within their "
        "intervals.",
        "## Claims, and what came out",
        "The condition that refutes each claim was in the code before the run.",
        *(_claim(finding, at, ran) for at, finding in enumerate(outcome.findings)),
        *(f"![{picture.title}]({picture.name}.svg)" for picture in outcome.pictures),
        *(f"## {table.title}\n\n{markdown(table)}" for table in outcome.tables),
        *outcome.notes,
        "In brackets: 95 % intervals, by bootstrap over jobs (of lives, where jobs depend on each other).",
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def _command(about: Experiment, ran: Ran) -> str:
    given = " --data PATH" if about.data is not None else ""
    sized = f" --tasks {ran.tasks}" if ran.tasks != about.tasks and about.data is None else ""
    seeds = "".join(f" --seed {each}" for each in ran.seeds) if ran.seeds != about.seeds else ""
    return f"python -m lab run {ran.name}{given}{sized}{seeds}"


def _claim(finding: Finding, at: int, ran: Ran) -> str:
    claim, alone = finding.claim, [found[at] for found in ran.by_seed]
    lines = [
        f"**{'Holds' if finding.holds else 'Refuted'}.** {claim.text}",
        "",
        f"- refuted if: {claim.refuted_by}",
        f"- seen: {finding.seen}",
        *([f"- with each seed alone it holds in {sum(alone)} of {len(alone)}"] if alone else []),
        *([] if finding.holds else [f"- what followed: {claim.followed or NOTHING_YET}"]),
    ]
    return "\n".join(lines)


def markdown(table: Table) -> str:
    """Return a table as Markdown, with its note above."""
    lines = [table.columns, tuple("---" for _ in table.columns), *table.rows]
    rows = "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
    return f"{table.note}\n\n{rows}" if table.note else rows


def _results(kept: dict[str, Kept]) -> str:
    rows = list[tuple[str, ...]]()
    for name, ran in kept.items():
        followed = {claim.text: claim.followed for claim in experiment(name).claims}
        for claim in ran.claims:
            after = followed.get(claim.text) or NOTHING_YET
            out = "holds" if claim.holds else f"**refuted**. {after[0].upper()}{after[1:]}"
            seeds = f"{sum(claim.by_seed)} of {len(claim.by_seed)}" if claim.by_seed else ""
            rows.append((f"[{name}]({name}.md)", claim.text, out, seeds, claim.seen))
    columns = ("experiment", "claim", "came out, and what followed", "holds with a seed alone", "seen")
    worked = sum(each.processor_seconds for each in kept.values())
    parts = [
        "# All claims",
        "Written by `python -m lab run NAME --out docs/lab`. How to read it: [the first page](README.md).",
        markdown(Table("", columns, tuple(rows))),
        f"These runs took {worked / 60:.0f} minutes of processor time.",
    ]
    return "\n\n".join(parts) + "\n"


def _as_kept(ran: Ran) -> Kept:
    def claimed(at: int, each: Finding) -> Claimed:
        alone = tuple(found[at] for found in ran.by_seed)
        return Claimed(
            text=each.claim.text, refuted_by=each.claim.refuted_by, holds=each.holds, seen=each.seen, by_seed=alone
        )

    return Kept(
        name=ran.name,
        tasks=ran.tasks,
        seeds=ran.seeds,
        seconds=round(ran.seconds),
        processor_seconds=round(ran.processor_seconds),
        claims=tuple(claimed(at, each) for at, each in enumerate(ran.outcome.findings)),
    )


def _kept(folder: Path) -> dict[str, Kept]:
    """Return the stored runs, in the order of the catalogue, without experiments that do not exist any more."""
    file = folder / RESULTS
    if not file.exists():
        return {}
    listed: Sequence[object] = cast("list[object]", json.loads(file.read_text(encoding="utf-8")))
    found = {each.name: each for each in map(Kept.model_validate, listed)}
    return {name: found[name] for name in NAMES if name in found}
