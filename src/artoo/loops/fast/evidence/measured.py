"""Rules for the figures of a clause: grounded, in the right unit, of the right thing, still true, and complete."""

from __future__ import annotations

import re
from collections.abc import Iterator

from artoo.loops.fast.evidence.calls import GOOD, Standing
from artoo.loops.fast.evidence.case import Case, contradiction
from artoo.loops.fast.evidence.claims import Clause, Stance
from artoo.loops.fast.evidence.figures import Fact, Grounding, asked_for, ground, ungrounded_tokens
from artoo.loops.fast.evidence.finding import Finding
from artoo.loops.fast.evidence.names import contains_word, is_file_like, mentions, without_names
from artoo.loops.fast.evidence.quantity import quantities
from artoo.loops.fast.evidence.words import words

_CANON = {
    "passed": "pass", "passing": "pass", "passes": "pass", "通过": "pass", "succeeded": "pass",
    "failed": "fail", "failing": "fail",
    "failures": "fail", "failure": "fail", "失败": "fail", "errors": "error", "错误": "error",
    "skipped": "skip", "跳过": "skip", "warnings": "warning", "警告": "warning",
}  # fmt: skip
_IDLE = frozenset(
    words(
        """the and are was were has have had with for from that this there not total all line lines file
        files byte bytes size test tests about people person row rows value number count"""
    )
)


def measured(clause: Clause, case: Case) -> Iterator[Finding]:
    """Findings against the figures of one clause."""
    for token in ungrounded_tokens(clause, case.said, f"{case.asked}\n{case.intent}"):
        yield Finding(
            "ungrounded_figure",
            f"“{clause.text}”, but {token} is nowhere in the evidence",
            identities=_identities(case),
        )
    if not clause.quantities:
        return
    text = without_names(clause.text)
    if not clause.machine and _computed(clause, case):
        return
    for grounding in ground(clause, text, case.views, case.facts, case.intent):
        if not grounding.grounded:
            yield _ungrounded(grounding, case)
        elif grounding.facts:
            yield from _misplaced(grounding, case)
            yield from _wrong_outcome(grounding, case)
            yield from _outdated(grounding, case)
            yield from _own_file(grounding, case)
        yield from _cut_short(grounding, case)


def _computed(clause: Clause, case: Case) -> bool:
    """Whether the clause is a sum that a call worked out: a result that its own words do not contain."""
    for view in case.views:
        if view.invented and view.standing in GOOD:
            results = {each.value for each in quantities(view.call.output) if not asked_for(each, view.asked)}
            known = results | {each.value for each in quantities(view.asked)}
            claimed = {each.value for each in clause.quantities}
            if claimed & results and claimed <= known:
                return True
    return False


def _ungrounded(grounding: Grounding, case: Case) -> Finding:
    figure, clause = grounding.quantity, grounding.clause
    other = [fact for fact in case.facts if fact.quantity.value == figure.value and figure.unit]
    if other:
        unit = other[0].quantity.unit or other[0].implied
        return contradiction(
            "wrong_unit",
            f"“{clause.text}”, but the evidence says {other[0].quantity.value:g} {unit}",
            [other[0].view],
        )
    return Finding(
        "ungrounded_figure",
        f"“{clause.text}”, but {figure.text} is nowhere in the evidence",
        identities=_identities(case),
    )


def _identities(case: Case) -> tuple[str, ...]:
    return case.views[-1].call.identity if case.views else ()


def _cell(fact: Fact) -> str:
    """The part of a line that belongs to a figure: `12 passed` of `3 failed, 12 passed`; else the whole line."""
    start = 0
    for part in re.split(r"(?<=[,;|])\s+", fact.line):
        at = fact.line.find(part, start)
        start = at + len(part)
        if at <= fact.quantity.start < start:
            return part if re.search(r"[A-Za-z一-鿿]{2}", part) else fact.line
    return fact.line


def _shape(cell: str) -> str:
    """A row's layout: figures as #, words as w. Rows of one table have one shape."""
    cell = re.sub(r"[A-Za-z_一-鿿][\w./@:-]*", "w", cell.strip(" \t,;{}[]|=\"'"))
    return re.sub(r"[-+]?\d[\d.,]*", "#", re.sub(r"\s+", " ", cell))


def _words(text: str) -> frozenset[str]:
    found = re.findall(
        r"[A-Za-z][\w./@-]*[A-Za-z0-9]|(?<![\w.-])[B-HJ-Zb-hj-z](?![\w.-])|通过|失败|错误|跳过|警告", text
    )
    folded = [word.lower() for word in found]
    return frozenset(_CANON.get(word) or word for word in folded if word not in _IDLE)


def _misplaced(grounding: Grounding, case: Case) -> Iterator[Finding]:
    """The figure belongs to another row of the same table than the name beside it."""
    carried = [fact for fact in grounding.facts if fact.line]
    if not carried or len(carried) < len(grounding.facts):
        return
    cells = [_cell(fact) for fact in carried]
    keys = {name.lower() for name in grounding.clause.names} | _words(grounding.clause.text)
    shapes = {_shape(cell) for cell in cells}
    for key in keys:
        rows = {_cell(fact) for fact in case.facts if fact.line and _has(_cell(fact), key)}
        if not rows or any(_has(cell, key) for cell in cells) or not shapes <= {_shape(row) for row in rows}:
            continue
        strangers = [cell for cell in cells if not (_words(cell) & keys)]
        if len(strangers) == len(cells):
            yield contradiction(
                "wrong_name",
                f"“{grounding.clause.text}”, but {grounding.quantity.text} belongs to: {cells[0].strip()[:80]}",
                [carried[0].view],
            )
            return


_CHANGED = re.compile(r"\binstead of\b|\brather than\b|\bfrom \S+ to\b|而不是|从.+[改变升降]", re.I)
_TALLY = re.compile(r"(\d+)\s*(?:个|项|条)?\s*(?:tests?\s+|测试\s*)?([A-Za-z]+|通过|失败|错误|跳过|警告)")


def _singular(word: str) -> str:
    low = word.lower()
    return _CANON.get(low, low.removesuffix("s") if len(low) > 3 else low)


def _wrong_outcome(grounding: Grounding, case: Case) -> Iterator[Finding]:
    """`13 failed` where the tally says `2 failed, 13 passed`."""
    if len(grounding.clause.quantities) != 1:
        return
    tally: dict[str, set[float]] = {}
    for fact in case.facts:
        for figure, word in _TALLY.findall(fact.line):
            tally.setdefault(_singular(word), set()).add(float(figure))
    meant = {_singular(word) for word in _words(grounding.clause.text)} & {*tally}
    if len(meant) != 1:
        return
    outcome = next(iter(meant))
    value = grounding.quantity.value
    elsewhere = any(value in figures for other, figures in tally.items() if other != outcome)
    if value not in tally[outcome] and elsewhere:
        yield contradiction(
            "wrong_name", f"“{grounding.clause.text}”, but {value:g} is another outcome", [grounding.facts[0].view]
        )


def _has(cell: str, key: str) -> bool:
    return key in _words(cell) or contains_word(cell.lower(), key)


def _outdated(grounding: Grounding, case: Case) -> Iterator[Finding]:
    """The figure was read before the thing was changed."""
    if (
        grounding.clause.earlier
        and grounding.clause.stance is Stance.FACT
        and re.search(r"before|had|original|previous|之前|原来|原本|was|were", grounding.clause.text, re.I)
    ):
        return
    if _CHANGED.search(grounding.clause.text):
        return
    last = max(fact.view.index for fact in grounding.facts)
    for later in case.views[last + 1 :]:
        read = [name for fact in grounding.facts for name in later.changed if fact.view.names(name)]
        if read and later.acts and later.standing is Standing.DONE:
            yield contradiction(
                "stale_evidence", f"“{grounding.clause.text}”, but {read[0]} was changed after it was read", [later]
            )
            return


def _own_file(grounding: Grounding, case: Case) -> Iterator[Finding]:
    """A figure out of a file that the task itself filled with its own words, which the claim does not say."""
    for fact in grounding.facts:
        written = {name for view in case.views[: fact.view.index] if view.writes_own_words for name in view.changed}
        read = [name for name in written if fact.view.names(name)]
        if not read or any(mentions(grounding.clause.text, name) for name in read):
            return
    names = [name for name in grounding.clause.names if is_file_like(name)]
    if not names and grounding.clause.stance is Stance.FACT:
        yield contradiction(
            "own_words",
            f"“{grounding.clause.text}”, but {grounding.quantity.text} comes from a file that was written for it",
            [grounding.facts[0].view],
        )


def _cut_short(grounding: Grounding, case: Case) -> Iterator[Finding]:
    """A count or total out of a run that did not end, or an output that was cut."""
    if case.admits or grounding.clause.hedged:
        return
    views = [fact.view for fact in grounding.facts] or [
        view for view in case.views if grounding.by == "counted" and not view.acts
    ]
    if views and all(view.standing is Standing.INCOMPLETE for view in views):
        yield contradiction("incomplete_run", f"“{grounding.clause.text}”, but {views[-1].failure}", views)
    elif views and all(view.call.truncated for view in views) and _counts_all(grounding):
        yield contradiction("truncated_count", f"“{grounding.clause.text}”, but the output was cut", views)


_TOTAL_LINE = re.compile(r"\b(?:total|sum|count|matches|found|results)\b|总|共", re.I)


def _counts_all(grounding: Grounding) -> bool:
    """Whether the figure counts what was shown, or stands for all of a search without a line that says so."""
    if grounding.by == "counted":
        return True
    searched = all(fact.view.searches and not _TOTAL_LINE.search(fact.line) for fact in grounding.facts)
    return grounding.clause.universal and bool(grounding.facts) and searched
