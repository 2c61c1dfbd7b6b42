"""The text and the answer options of an approval question for a protocol's client.

Reference: law 1.
"""

from __future__ import annotations

from dataclasses import dataclass

from artoo.contracts.changes import is_visible
from artoo.contracts.confirmation import ConfirmationRequest, Consent
from artoo.contracts.settling import BY_NAME, Review
from artoo.words.question import beside

LONGEST = 50_000
"""The most characters of a question. A question is never shortened, so a longer question is not asked here."""

_HARMLESS_NAMED = 50


@dataclass(frozen=True, slots=True)
class Option:
    """One answer: its name in the protocol, its label for the user, and the consent that it gives."""

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


def question_text(request: ConfirmationRequest) -> str:
    """Return the whole question. The main parts of a long question are repeated at its end, close to the answer.

    Raises ValueError if the text is longer than `LONGEST`.
    """
    lines = [request.title]
    if request.source is not None:
        lines.append(f"First named by: {request.source}")
    if request.review is not None:
        lines += _review_lines(request.review)
    else:
        short = beside(request)
        lines += (*request.details, *(("", request.title, *short) if short else ()))
    text = "\n".join(map(_visible, lines))
    # A shortened question could hide what the user consents to.
    if len(text) > LONGEST:
        raise ValueError(f"{len(text):,} characters, more than {LONGEST:,}")
    return text


def _review_lines(review: Review) -> list[str]:
    """List every dangerous path by name, and at most `_HARMLESS_NAMED` of the other paths."""
    named = [one for one in review.changes if one.change_class in BY_NAME]
    others = [one for one in review.changes if one.change_class not in BY_NAME]
    lines = [
        f"{one.kind.value} {one.path}" + "".join(f": {part}" for part in (one.reason, one.detail) if part)
        for one in (*named, *others[:_HARMLESS_NAMED])
    ]
    if len(others) > _HARMLESS_NAMED:
        lines.append(f"and {len(others) - _HARMLESS_NAMED} more, none of them a deletion or a start-up file")
    lines += [f"conflict {one.path}: {one.reason}" for one in review.conflicts]
    return [*lines, *(f"has left this machine already: {sent}" for sent in review.went_out)]


def _visible(line: str) -> str:
    """Escape invisible characters, so that a file name cannot forge or hide a line of the question."""
    return "".join(
        one if is_visible(one) else one.encode("unicode_escape", "backslashreplace").decode() for one in line
    )
