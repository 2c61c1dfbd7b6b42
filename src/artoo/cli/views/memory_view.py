"""How memory looks on a terminal, and as JSON."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from artoo.cli.display.sanitize import one_line
from artoo.cli.views.team_view import show_table
from artoo.contracts.memory import DreamReport, MemoryAction, MemoryChange, Potentials, SOPRecord
from artoo.contracts.shortened import shortened
from artoo.memory.views import Explanation, Findings, Kind, Overview
from artoo.words.shown import plural

LEVEL_NAMES = {"C": "common sense", "K": "knowledge", "M": "megrams"}
COLOURS = {
    MemoryAction.EXPLOIT: "green",
    MemoryAction.AVOID: "red",
    MemoryAction.CAUTION: "yellow",
    MemoryAction.IGNORE: "dim",
}
ADVICE = {
    MemoryAction.EXPLOIT: "SHOULD PREFER",
    MemoryAction.AVOID: "MUST NOT",
    MemoryAction.CAUTION: "CAUTION",
    MemoryAction.IGNORE: "no advice",
}
CONTENT_WIDTH = 60
NAME_WIDTH = 120
"""Of a pair. A target can be a whole program or command, since a tool is held by what it was given."""

JsonObject = dict[str, object]


def show_overview(found: Overview) -> None:
    """The pyramid, the strongest pairs, what the Dreamer did lately."""
    console = Console(highlight=False)
    widest = max(1, *found.levels.values())
    console.print(Text("T  thinking       files; only you change them", style="bold"))
    for level in "CKM":
        held = found.levels[level]
        bar = "█" * max(1 if held else 0, round(30 * held / widest))
        console.print(Text(f"{level}  {LEVEL_NAMES[level]:<13} {held:>9,}  {bar}"))
    console.print(f"{found.pairs:,} tag pairs, {found.bytes_used / 1e6:,.1f} MB")
    for action in (MemoryAction.EXPLOIT, MemoryAction.AVOID, MemoryAction.CAUTION):
        _show_strongest(console, action, found.strongest[action])
    for report in found.reports:
        _print_report(console, report)
    for proposal in found.proposals:
        console.print(Text(f"\nProposal {proposal.id}: {one_line(proposal.text)}"))
        console.print("  artoo memory accept|refuse ID", style="dim")


def show_kinds(found: Sequence[Kind]) -> None:
    """The kinds of request, each with its newest one."""
    rows = [(each.label, str(each.requests), shortened(one_line(each.example), CONTENT_WIDTH)) for each in found]
    show_table(("kind", "requests", "newest"), rows, "Memory knows no kind of request yet.")
    if found:
        Console().print("\nartoo memory rename OLD NEW renames a kind, or merges it with another.", style="dim")


def show_advice(live: Potentials, rules: Sequence[SOPRecord]) -> None:
    """A pair's potentials and rules."""
    console = Console(highlight=False)
    _print_potentials(console, live)
    for rule in rules:
        advice = ADVICE[MemoryAction.EXPLOIT if rule.sigma > 0 else MemoryAction.AVOID]
        console.print(Text(f"rule {rule.id}  {advice}: {one_line(rule.content)}"))


def show_explanation(found: Explanation) -> None:
    """Show the potentials of a pair and the share of each entry in them."""
    console = Console(highlight=False)
    _print_potentials(console, found.potentials)
    if not found.shares:
        console.print("Memory holds no evidence about this pair.")
        return
    rows = [
        (
            share.megram.id,  # whole: it is what `artoo memory feedback` and `forget` take
            share.megram.state.value,
            share.megram.level.value,
            f"{share.attention:.3f}",
            f"{share.decision:+.3f}",
            share.megram.created_at.astimezone().strftime("%Y-%m-%d %H:%M"),
            one_line(share.megram.content)[:CONTENT_WIDTH],
        )
        for share in found.shares
    ]
    show_table(("id", "state", "level", "attention", "decision", "at", "content"), rows, "")
    if found.left_out:
        console.print(f"{found.left_out:,} older entries count in the potentials but are not shown.", style="dim")


def show_report(report: DreamReport) -> None:
    """One Dreamer pass."""
    _print_report(Console(highlight=False), report)


def show_findings(found: Findings, after: Findings, *, checked_only: bool) -> None:
    """What verify found, and whether it is repaired."""
    console = Console(highlight=False)
    console.print(f"{found.records:,} records in {found.pairs:,} pairs")
    if found.sound:
        console.print("Sums and indexes agree with the records.")
        return
    console.print(
        f"unreadable records: {found.unreadable}, missing index entries: {found.missing_index}, "
        f"stray index entries: {found.stray_index}, wrong sums: {found.wrong_sums}"
    )
    for problem in found.examples:
        console.print(Text(f"  {one_line(problem)}"))
    if after.sound:
        console.print("Repaired.")
    else:
        console.print(
            "Run `artoo memory verify` to repair." if checked_only else "Not everything could be repaired."
        )


def overview_object(found: Overview) -> JsonObject:
    """The overview for print_json."""
    strongest = {action: each for action, each in found.strongest.items() if action is not MemoryAction.IGNORE}
    return {
        "levels": found.levels,
        "pairs": found.pairs,
        "bytes": found.bytes_used,
        "strongest": strongest,
        "proposals": found.proposals,
        "reports": found.reports,
    }


def explanation_object(found: Explanation) -> JsonObject:
    """The explanation for print_json."""
    shares = [
        {"attention": share.attention, "decision": share.decision, **share.megram.model_dump(mode="json")}
        for share in found.shares
    ]
    curve = [
        {"at": at.isoformat(), "attention": attention, "decision": decision}
        for at, attention, decision in found.curve
    ]
    return {"potentials": found.potentials, "shares": shares, "curve": curve, "left_out": found.left_out}


def _show_strongest(console: Console, action: MemoryAction, entries: Sequence[Potentials]) -> None:
    if not entries:
        return
    console.print(Text(f"\n{ADVICE[action]}", style=f"bold {COLOURS[action]}"))
    for entry in entries:
        sums = f"{entry.attention:8.2f} {entry.decision:+8.2f}"
        console.print(Text(f"  {sums}  {_named(entry)}"))


def _named(about: Potentials | MemoryChange) -> str:
    """A pair on one line; `--json` has it whole."""
    return f"{one_line(about.space)}  {shortened(one_line(about.entity), NAME_WIDTH)}"


def _print_potentials(console: Console, live: Potentials) -> None:
    console.print(Text(_named(live), style="bold"))
    line = f"attention {live.attention:.3f}  decision {live.decision:+.3f}  {ADVICE[live.action]}"
    console.print(Text(line, style=COLOURS[live.action]))


def _print_report(console: Console, report: DreamReport) -> None:
    state = "" if report.finished else " (to be continued)"
    started = report.started_at.astimezone().strftime("%Y-%m-%d %H:%M")
    console.print(
        Text(
            f"\nDream of {started}{state}: {report.examined:,} examined, {report.forgotten:,} forgotten, "
            f"{len(report.demoted)} demoted, {len(report.promoted)} promoted, "
            f"{len(report.hypotheses)} guessed, {len(report.proposals)} proposed"
        )
    )
    if report.error is not None:
        console.print(Text(f"  failed: {one_line(report.error)}", style="red"))
    if report.drafts_skipped:
        console.print(Text(f"  not worded: {plural(report.drafts_skipped, 'strong cluster')}", style="dim"))
    if report.scale > 1:
        needed = f"  rules have proved false: a new one needs {report.scale:.1f} times the evidence"
        console.print(Text(needed, style="dim"))
    named: tuple[tuple[str, Sequence[MemoryChange]], ...] = (
        ("promoted", report.promoted),
        ("demoted", report.demoted),
        ("guessed", report.hypotheses),
        ("doubted", report.biases),
        ("forgot", report.forgotten_examples[:3]),
    )
    for word, changes in named:
        for change in changes:
            console.print(Text(f"  {word} {change.megram_id}  {_named(change)}: {one_line(change.reason)}"))
