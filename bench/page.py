"""Writes the page of a benchmark: what ran, how it ended, what failed and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import mean, median

from bench.runner import Row

_SHOWN = 40


def page(title: str, ran: str, rows: Sequence[Row]) -> str:
    """Return the page in Markdown. `ran` says what ran: agent, model, date."""
    solved = [row for row in rows if not row.wrong]
    lines = [f"# {title}", "", ran, "", f"Solved: {len(solved)} of {len(rows)}.", ""]
    if not rows:
        return "\n".join(lines)
    lines += ["| per task | mean | median | most |", "|---|---|---|---|"]
    for name, values in (
        ("model calls", [row.calls for row in rows]),
        ("prompt tokens", [row.prompt for row in rows]),
        ("of them in no earlier prompt", [row.uncached for row in rows]),
        ("seconds, model included", [row.seconds for row in rows]),
    ):
        lines.append(f"| {name} | {mean(values):,.1f} | {median(values):,.1f} | {max(values):,.1f} |")
    lines += ["", "How it ended, by what the agent said of its own work:", ""]
    lines += ["| exit code | said | solved | not solved |", "|---|---|---|---|"]
    ways = Counter((row.code, row.claims, not row.wrong) for row in rows)
    for code, claims in sorted({(one[0], one[1]) for one in ways}, key=str):
        lines.append(f"| {code} | {claims} | {ways[code, claims, True]} | {ways[code, claims, False]} |")
    failed = [row for row in rows if row.wrong]
    if failed:
        lines += ["", f"Not solved ({len(failed)}, the first {_SHOWN}):", ""]
        lines += [f"- `{row.task}`: {' '.join(row.wrong.split())[:200]}" for row in failed[:_SHOWN]]
    unplayed = [row.task for row in rows if row.unplayed]
    if unplayed:
        lines += ["", f"The script had no answer for something that was asked in: {', '.join(unplayed[:_SHOWN])}."]
    return "\n".join(lines) + "\n"
