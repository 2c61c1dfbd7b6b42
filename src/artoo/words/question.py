"""The answers to an approval question (labels, typed words) while a task runs, and its summary above them.

Every surface but the web UI takes the answers from here. Whether a consent allows an operation is in
`contracts/confirmation.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from artoo.contracts.confirmation import ConfirmationRequest, Consent

MOST = 8
"""The most parts of a summary. A screen of 24 lines has room for them, the title and the prompt."""

LONGEST = 100
"""The most characters of one part."""

SEEN_AT_ONCE = 20
"""The most rows (of 80 characters) of a question that fit in a window without scrolling."""


SAID = {
    Consent.ONCE: "allowed once",
    Consent.TASK: "allowed for this task",
    Consent.NO: "not allowed",
    Consent.KEEP: "kept for later",
    Consent.DISCARD: "discarded",
}
"""The text that confirms each answer."""

TYPED: dict[str, Consent] = {
    **dict.fromkeys(("o", "once", "y", "yes", "一次", "一", "是"), Consent.ONCE),
    **dict.fromkeys(("t", "task", "本任务", "任务"), Consent.TASK),
    **dict.fromkeys(("", "n", "no", "否", "不"), Consent.NO),
}
"""The words that a user can type on a terminal."""


@dataclass(frozen=True, slots=True)
class Option:
    """One answer: its name in a protocol, its label for the user, and the consent that it gives."""

    name: str
    label: str
    consent: Consent


_ACT = (
    Option("once", "Yes, this once", Consent.ONCE),
    Option("task", "Yes, the same again in this task too", Consent.TASK),
    Option("no", "No", Consent.NO),
)
_REVIEW = (
    Option("apply", "Apply all of it", Consent.ONCE),
    Option("keep", "Keep it for later", Consent.KEEP),
    Option("discard", "Discard it", Consent.DISCARD),
)
_PLAN = (
    Option("yes", "Yes, do it so", Consent.ONCE),
    Option("no", "No, do nothing", Consent.NO),
)


def options_of(request: ConfirmationRequest) -> tuple[Option, ...]:
    """Return the possible answers to a request, except free text."""
    if request.wants != "consent":
        return _PLAN if request.wants == "plan" else ()
    return _ACT if request.review is None else _REVIEW


def consent_named(request: ConfirmationRequest, name: object) -> Consent:
    """Return the consent that an answer gives. An unknown answer counts as no."""
    return next((one.consent for one in options_of(request) if one.name == name), Consent.NO)


def command_lines(text: str) -> Iterator[str]:
    """Yield a command as a terminal shows it: `$` before its first line, the others indented."""
    first, *others = text.splitlines() or [""]
    yield f"$ {first}"
    yield from (f"  {line}" for line in others)


def beside(request: ConfirmationRequest) -> tuple[str, ...]:
    """Return the summary of a question that is too long for one window, and nothing for a shorter question."""
    rows = sum(1 + len(line) // 80 for line in request.details)
    return parts(request) if rows > SEEN_AT_ONCE else ()


def parts(request: ConfirmationRequest) -> tuple[str, ...]:
    """Return the first line of each part (a recipient, a path, a host, a text), in their order.

    If there are more than `MOST` parts, short parts are preferred, and the others are counted. An indented line
    belongs to the part above it, so a text of many lines cannot add a part.
    """
    found = list(_parts(request.details))
    kept = sorted(range(len(found)), key=lambda at: (found[at][1] > 0 or len(found[at][0]) > LONGEST, at))[:MOST]
    said = [_short(*found[at]) for at in sorted(kept)]
    return (*said, f"… +{len(found) - len(kept)}") if len(found) > len(kept) else tuple(said)


def _parts(details: Iterable[str]) -> Iterator[tuple[str, int]]:
    """Yield the first line of each part, with the number of indented lines below it."""
    head, more = None, 0
    for line in details:
        if head is not None and line.startswith("  "):
            more += 1
            continue
        if head is not None:
            yield head, more
        head, more = line, 0
    if head is not None:
        yield head, more


def _short(line: str, more: int) -> str:
    if len(line) > LONGEST:
        line = f"{line[: LONGEST // 2]} … {line[3 - LONGEST // 2 :]}"
    return f"{line} … +{more}" if more else line
