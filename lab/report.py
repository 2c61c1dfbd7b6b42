"""The pages of docs/lab: one an experiment, its pictures, and a summary of all that have been run.

`results.json` beside them holds what each experiment found, so that one can be run anew without the others.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

from artoo.contracts.base import Contract
from lab.catalogue import EXPERIMENTS, experiment
from lab.conducting import Ran
from lab.experiment import Experiment, Finding, Table

RESULTS = "results.json"
SUMMARY = "README.md"
NOTHING_YET = "nothing yet"


class Claimed(Contract):
    """A claim and what came out, as it is kept."""

    text: str
    refuted_by: str
    holds: bool
    seen: str


class Kept(Contract):
    """A run, as it is kept. `processor_seconds` is None where it was not measured yet."""

    name: str
    tasks: int
    seed: int
    seconds: float
    processor_seconds: float | None = None
    claims: tuple[Claimed, ...]


def keep(folder: Path, ran: Ran) -> list[Path]:
    """Writes a run's page and pictures, and the summary anew. Returns what was written."""
    written = {folder / f"{picture.name}.svg": picture.svg for picture in ran.outcome.pictures}
    written[folder / f"{ran.name}.md"] = page(ran)
    kept = [each.model_dump() for each in {**_kept(folder), ran.name: _as_kept(ran)}.values()]
    written[folder / RESULTS] = json.dumps(kept, indent=1, ensure_ascii=False)
    return [*_written(written), *state_claims(folder)]


def state_claims(folder: Path) -> list[Path]:
    """Writes the summary, and for each experiment that was not run yet a page with its claims."""
    kept = _kept(folder)
    waiting = {folder / f"{each.name}.md": pending(each) for each in EXPERIMENTS if each.name not in kept}
    return _written({**waiting, folder / SUMMARY: summary(kept)})


def _written(pages: Mapping[Path, str]) -> list[Path]:
    for path, text in pages.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.rstrip("\n") + "\n", encoding="utf-8")
    return list(pages)


def page(ran: Ran) -> str:
    """A run as Markdown."""
    about, outcome = experiment(ran.name), ran.outcome
    parts = [
        f"# {about.title}",
        about.question,
        f"Real: {about.real}. Simulated: {about.simulated}. The world and the rules of comparison are in "
        "[the lab's design](../design/lab.md).",
        *_how(about),
        f"{ran.tasks} {about.unit} a cell{' at most' if about.data else ''}, seed {ran.seed}; "
        f"`python -m lab run {ran.name}{_given(about)}{_sized(ran)}` makes the same figures again with the same "
        "artoo. Another version asks and waits otherwise, which moves some of them within their intervals.",
        "## Claims, and what came out",
        "What would refute a claim stood in the code before the run.",
        *(
            f"**{'Holds' if each.holds else 'Refuted'}.** {each.claim.text}\n\n"
            f"- refuted if: {each.claim.refuted_by}\n- seen: {each.seen}{_followed(each)}"
            for each in outcome.findings
        ),
        *(f"![{picture.title}]({picture.name}.svg)" for picture in outcome.pictures),
        *(f"## {table.title}\n\n{markdown(table)}" for table in outcome.tables),
        *outcome.notes,
        "In brackets: 95 % intervals, by bootstrap over jobs (of lives, where jobs depend on each other).",
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def _followed(finding: Finding) -> str:
    return "" if finding.holds else f"\n- what followed: {finding.claim.followed or NOTHING_YET}"


def _given(about: Experiment) -> str:
    return " --data PATH" if about.data is not None else ""


def _sized(ran: Ran) -> str:
    return f" --tasks {ran.tasks}" if ran.tasks < experiment(ran.name).tasks else ""


def _how(about: Experiment) -> list[str]:
    return [f"The data is not part of artoo. {about.data.how}"] if about.data is not None else []


def pending(about: Experiment) -> str:
    """The page of an experiment that was not run yet: its claims, as they will be judged."""
    parts = [
        f"# {about.title}",
        about.question,
        f"**Not run yet.** `python -m lab report {about.name}{_given(about)}` runs it and writes this page.",
        *_how(about),
        "## Claims",
        *(f"{claim.text}\n\n- refuted if: {claim.refuted_by}" for claim in about.claims),
    ]
    return "\n\n".join(parts) + "\n"


def markdown(table: Table) -> str:
    """A table as Markdown, with its note above."""
    lines = [table.columns, tuple("---" for _ in table.columns), *table.rows]
    rows = "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
    return f"{table.note}\n\n{rows}" if table.note else rows


def summary(kept: dict[str, Kept]) -> str:
    """The first page: every claim of every experiment that was run, in one table."""
    rows = list[tuple[str, ...]]()
    for each in EXPERIMENTS:
        followed = {claim.text: claim.followed for claim in each.claims}
        for claim in kept[each.name].claims if each.name in kept else ():
            name = f"[{each.name}]({each.name}.md)"
            after = followed.get(claim.text) or NOTHING_YET
            out = "holds" if claim.holds else f"**refuted**. {after[0].upper()}{after[1:]}"
            rows.append((name, claim.text, out, claim.seen))
    missing = [each.name for each in EXPERIMENTS if each.name not in kept]
    table = (
        markdown(Table("", ("experiment", "claim", "came out, and what followed", "seen"), tuple(rows)))
        if rows
        else ""
    )
    given = {each.name for each in EXPERIMENTS if each.data is not None}
    parts = [
        "# The paper's claims, run",
        "What `python -m lab report` found: artoo's own parts in a simulated world, against baselines and against "
        "the law without each of its terms; and on public data. A claim that is refuted is a result, and stays "
        "here with what followed from it. Nothing here says how good a language model is: "
        "models are simulated. How, and what is real: [the lab's design](../design/lab.md).",
        table,
        _took("What needs no data", [each for name, each in kept.items() if name not in given]),
        _took("What needs data", [each for name, each in kept.items() if name in given]),
        f"Not run: {', '.join(missing)}." if missing else "",
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def _took(what: str, kept: Sequence[Kept]) -> str:
    """Time on the clock depends on the machine and on who else uses it; a processor's much less."""
    if not kept:
        return ""
    clock, worked = sum(each.seconds for each in kept), [each.processor_seconds for each in kept]
    spent = sum(each for each in worked if each is not None)
    said = f"{what} took {clock / 60:.0f} minutes on the clock"
    if None in worked:
        return f"{said}."
    return f"{said} and {spent / 60:.0f} of processor time, so on two processors at least {spent / 120:.0f}."


def _as_kept(ran: Ran) -> Kept:
    claims: Sequence[Claimed] = [
        Claimed(text=each.claim.text, refuted_by=each.claim.refuted_by, holds=each.holds, seen=each.seen)
        for each in ran.outcome.findings
    ]
    return Kept(
        name=ran.name,
        tasks=ran.tasks,
        seed=ran.seed,
        seconds=round(ran.seconds),
        processor_seconds=round(ran.processor_seconds),
        claims=tuple(claims),
    )


def _kept(folder: Path) -> dict[str, Kept]:
    """The runs that are kept, in the order of the catalogue, without experiments that there are not any more."""
    file = folder / RESULTS
    known = [each.name for each in EXPERIMENTS]
    if not file.exists():
        return {}
    found = [
        Kept.model_validate(each) for each in cast("list[object]", json.loads(file.read_text(encoding="utf-8")))
    ]
    return {each.name: each for each in found if each.name in known}
