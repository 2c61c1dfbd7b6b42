"""The text of an approval question for a client of MCP or ACP; the answers are in `words/question.py`.

Reference: Law 1.
"""

from __future__ import annotations

from artoo.contracts.changes import is_visible
from artoo.contracts.confirmation import ConfirmationRequest
from artoo.contracts.settling import BY_NAME, Review
from artoo.words.question import beside

LONGEST = 50_000
"""Maximum number of characters of a question. A question is never shortened. If it is longer, it is not asked
here."""

_HARMLESS_NAMED = 50


def question_text(request: ConfirmationRequest) -> str:
    """Return the whole question. If the question is long, its main parts are repeated at the end, close to the
    answer.

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
    # A shortened question could hide a part of the operation to which the user consents.
    if len(text) > LONGEST:
        raise ValueError(f"{len(text):,} characters, more than {LONGEST:,}")
    return text


def _review_lines(review: Review) -> list[str]:
    """List every dangerous path, and at most `_HARMLESS_NAMED` of the other paths."""
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
    """Escape invisible characters, so that the name of a file cannot imitate or hide a line of the question."""
    return "".join(
        one if is_visible(one) else one.encode("unicode_escape", "backslashreplace").decode() for one in line
    )
