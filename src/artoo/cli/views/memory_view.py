"""The text and JSON of `artoo memory` (overview, advice, explanation), and of each pass of the Dreamer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from artoo.cli.display.sanitize import one_line
from artoo.cli.views.team_view import table_lines
from artoo.contracts.memory import DreamReport, MemoryAction, MemoryChange, Potentials, SOPRecord
from artoo.contracts.text import shortened
from artoo.memory.views import Explanation, Findings, Overview, RequestKind
from artoo.words.shown import local_time, plural

LEVEL_NAMES = {"C": "common sense", "K": "knowledge", "M": "megrams"}
ADVICE = {
    MemoryAction.EXPLOIT: "SHOULD PREFER",
    MemoryAction.AVOID: "MUST NOT",
    MemoryAction.CAUTION: "CAUTION",
    MemoryAction.IGNORE: "no advice",
}
CONTENT_WIDTH = 60
NAME_WIDTH = 120
"""Maximum number of characters of a pair. A target can be a whole program or command."""

JsonObject = dict[str, object]


def overview_lines(found: Overview) -> Iterator[str]:
    """Return lines with the pyramid of levels, the strongest pairs, and the latest passes of the Dreamer."""
    widest = max(1, *found.levels.values())
    yield "T  thinking       files; only you change them"
    for level in "CKM":
        held = found.levels[level]
        bar = "█" * max(1 if held else 0, round(30 * held / widest))
        yield f"{level}  {LEVEL_NAMES[level]:<13} {held:>9,}  {bar}".rstrip()
    yield f"{found.pairs:,} tag pairs, {found.bytes_used / 1e6:,.1f} MB"
    for action in (MemoryAction.EXPLOIT, MemoryAction.AVOID, MemoryAction.CAUTION):
        entries = found.strongest[action]
        yield from ("", ADVICE[action]) if entries else ()
        yield from (f"  {entry.attention:8.2f} {entry.decision:+8.2f}  {_named(entry)}" for entry in entries)
    for report in found.reports:
        yield from ("", *report_lines(report))
    for proposal in found.proposals:
        yield from ("", f"Proposal {proposal.id}: {one_line(proposal.text)}", "  artoo memory accept|refuse ID")


def kind_lines(found: Sequence[RequestKind]) -> list[str]:
    """Return lines with the kinds of request, each with its newest request."""
    rows = [(each.label, str(each.requests), shortened(one_line(each.example), CONTENT_WIDTH)) for each in found]
    lines = table_lines(("kind", "requests", "newest"), rows, "Memory knows no kind of request yet.")
    hint = "artoo memory rename OLD NEW renames a kind, or merges it with another."
    return [*lines, "", hint] if found else lines


def advice_lines(live: Potentials, rules: Sequence[SOPRecord]) -> list[str]:
    """Return lines with the potentials and the rules of a pair."""
    lines = _potentials(live)
    for rule in rules:
        advice = ADVICE[MemoryAction.EXPLOIT if rule.sigma > 0 else MemoryAction.AVOID]
        lines.append(f"rule {rule.id}  {advice}: {one_line(rule.content)}")
    return lines


def explanation_lines(found: Explanation) -> list[str]:
    """Return lines with the potentials of a pair, and how much each entry contributes to them."""
    if not found.shares:
        return [*_potentials(found.potentials), "Memory has no evidence about this pair."]
    rows = [
        (
            # The id is not shortened, because the user passes it to `artoo memory feedback` and `artoo memory
            # forget`.
            share.megram.id,
            share.megram.state.value,
            share.megram.level.value,
            f"{share.attention:.3f}",
            f"{share.decision:+.3f}",
            local_time(share.megram.created_at),
            one_line(share.megram.content)[:CONTENT_WIDTH],
        )
        for share in found.shares
    ]
    heads = ("id", "state", "level", "attention", "decision", "at", "content")
    lines = [*_potentials(found.potentials), *table_lines(heads, rows, "")]
    older = f"{found.left_out:,} older entries count in the potentials but are not shown."
    return [*lines, older] if found.left_out else lines


def report_lines(report: DreamReport) -> Iterator[str]:
    """Return the lines about one pass of the Dreamer."""
    state = "" if report.finished else " (to be continued)"
    yield (
        f"Dream of {local_time(report.started_at)}{state}: {report.examined:,} examined, "
        f"{report.forgotten:,} forgotten, {len(report.demoted)} demoted, {len(report.promoted)} promoted, "
        f"{len(report.hypotheses)} guessed, {len(report.proposals)} proposed"
    )
    if report.error is not None:
        yield f"  failed: {one_line(report.error)}"
    if report.drafts_skipped:
        yield f"  not worded: {plural(report.drafts_skipped, 'strong cluster')}"
    if report.scale > 1:
        yield f"  rules have proved false: a new one needs {report.scale:.1f} times the evidence"
    named: tuple[tuple[str, Sequence[MemoryChange]], ...] = (
        ("promoted", report.promoted),
        ("demoted", report.demoted),
        ("guessed", report.hypotheses),
        ("doubted", report.biases),
        ("forgot", report.forgotten_examples[:3]),
    )
    for word, changes in named:
        yield from (f"  {word} {each.megram_id}  {_named(each)}: {one_line(each.reason)}" for each in changes)


def finding_lines(found: Findings, after: Findings, *, checked_only: bool) -> list[str]:
    """Return lines with the findings of `artoo memory verify`, which also say whether they were repaired."""
    lines = [f"{found.records:,} records in {found.pairs:,} pairs"]
    if found.sound:
        return [*lines, "Sums and indexes agree with the records."]
    wrong = "Run `artoo memory verify` to repair." if checked_only else "Not everything could be repaired."
    return [
        *lines,
        f"unreadable records: {found.unreadable}, missing index entries: {found.missing_index}, "
        f"wrong sums: {found.wrong_sums}",
        *(f"  {one_line(problem)}" for problem in found.examples),
        "Repaired." if after.sound else wrong,
    ]


def overview_object(found: Overview) -> JsonObject:
    """Return the overview as JSON."""
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
    """Return the explanation as JSON."""
    shares = [
        {"attention": share.attention, "decision": share.decision, **share.megram.model_dump(mode="json")}
        for share in found.shares
    ]
    curve = [
        {"at": at.isoformat(), "attention": attention, "decision": decision}
        for at, attention, decision in found.curve
    ]
    return {"potentials": found.potentials, "shares": shares, "curve": curve, "left_out": found.left_out}


def _named(about: Potentials | MemoryChange) -> str:
    """Return a pair in one line. It is shortened if it is long. `--json` has the whole pair."""
    return f"{one_line(about.space)}  {shortened(one_line(about.entity), NAME_WIDTH)}"


def _potentials(live: Potentials) -> list[str]:
    sums = f"attention {live.attention:.3f}  decision {live.decision:+.3f}  {ADVICE[live.action]}"
    return [_named(live), sums]
