"""Writes the page of a benchmark: one line for each run, how each ended, what failed and why.

`python -m bench.page TITLE RECORD… --page FILE` makes one page of several runs.
Notes of an earlier page are retained.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import mean, median

from bench.runner import Row, rows_of

NOTES = "## Notes"
_SHOWN = 12


def page(title: str, runs: Mapping[str, Sequence[Row]]) -> str:
    """Return the page in Markdown. `runs` are the rows by what ran (agent, model, date)."""
    lines = [f"# {title}", ""]
    lines += [
        "| run | tasks | solved | ended as | calls, mean (most) | prompt tokens | uncached | seconds, median |"
    ]
    lines += ["|---|---|---|---|---|---|---|---|"]
    lines += [_line(ran, rows) for ran, rows in runs.items()]
    lines += ["", "Tokens are means. Uncached tokens were in no earlier prompt of the same task.", ""]
    for ran, rows in runs.items():
        lines += _failed(ran, rows)
    return "\n".join(lines)


def _line(ran: str, rows: Sequence[Row]) -> str:
    solved = sum(not row.wrong for row in rows)
    if not rows:
        return f"| {ran} | 0 | 0 | | | | | |"
    ways = Counter(row.claims for row in rows).most_common()
    ended = ", ".join(f"{claims} {count}" for claims, count in ways)
    calls = [row.calls for row in rows]
    tokens = f"{mean(row.prompt for row in rows):,.0f} | {mean(row.uncached for row in rows):,.0f}"
    spent = f"{mean(calls):.1f} ({max(calls)}) | {tokens} | {median(row.seconds for row in rows):.1f}"
    return f"| {ran} | {len(rows)} | {solved} | {ended} | {spent} |"


def _failed(ran: str, rows: Sequence[Row]) -> Iterator[str]:
    """Yield what was not solved in a run, and where the script had no answer."""
    failed = [row for row in rows if row.wrong]
    unplayed = [row.task for row in rows if row.unplayed]
    if failed:
        yield from (f"Not solved in {ran} ({len(failed)}, at most {_SHOWN} shown):", "")
        yield from (f"- `{row.task}`: {' '.join(row.wrong.split())[:200]}" for row in failed[:_SHOWN])
        yield ""
    if unplayed:
        yield from (f"In {ran} the script had no answer in: {', '.join(unplayed[:_SHOWN])}.", "")


def write(file: Path, text: str) -> None:
    """Write a page, and retain the notes of the one that is there."""
    earlier = file.read_text(encoding="utf-8") if file.exists() else ""
    _, found, notes = earlier.partition(NOTES)
    file.write_text(text + (f"\n{NOTES}{notes}" if found else ""), encoding="utf-8")


def main() -> None:
    """Make one page of several records."""
    words = argparse.ArgumentParser(prog="python -m bench.page", description=__doc__)
    words.add_argument("title")
    words.add_argument("records", nargs="+", type=Path)
    words.add_argument("--page", type=Path, required=True)
    given = words.parse_args()
    write(given.page, page(given.title, {record.stem: rows_of(record) for record in given.records}))


if __name__ == "__main__":
    main()
