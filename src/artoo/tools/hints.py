"""What to add to a failed command so that the next try is better: where the named files really are, above all."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from artoo.contracts.errors import ToolError
from artoo.contracts.execution import CallStatus
from artoo.ports.sandbox import Roots
from artoo.ports.workspace import Files
from artoo.tools.nearby import explain_missing
from artoo.tools.paths import absolute, found_at
from artoo.tools.threads import in_thread
from artoo.tools.tool import Outcome

_MOST_HINTS = 2
_MOST_ACCUSED = 20
_LIKE_A_PATH = re.compile(r"/|[^.]\.\w+\Z")
_OF_A_PROGRAM = re.compile(r"[\n;()\"'`$|<>]")
"""What stands in the text of a program, and in a name of a file only by a quirk."""
_OF_REVISIONS = re.compile(r"\b(revision|pathspec|refspec|ref|reference|object name|commit-ish|tree-ish)\b")
"""Where git speaks of its own names; commands run in a plain locale."""
_ACROSS = os.strerror(errno.EXDEV)
_NO_RENAME = (
    "a directory that was there before the task cannot be renamed in one step here; mv and shutil.move can move it,"
    " and instead of git mv: mv, then git add -A"
)
"""An overlay refuses that rename: an unprivileged one may not keep where a directory came from (`redirect_dir`)."""
_OF_A_FILE = re.compile(r"[^./]\.[A-Za-z]\w*\Z")


async def with_hints(outcome: Outcome, words: Iterable[str], roots: Roots, files: Files) -> Outcome:
    """The outcome with a reason that explains those of `words` that it complains about and that are not there."""
    complaint = outcome.error_output
    if outcome.status is not CallStatus.ERROR or not complaint or outcome.exit_code in (0, None):
        return outcome
    named = (word for word in dict.fromkeys(words) if _names_a_path(word) and word in complaint)
    accused = tuple(word for word in named if not _is_revision(word, complaint))
    hints = await in_thread(_hints, accused, roots, files)
    hints += [_NO_RENAME] if _ACROSS in complaint else []
    reason = "; ".join(filter(None, (outcome.reason, *hints)))
    return replace(outcome, reason=reason or last_line(complaint))


def _names_a_path(word: str) -> bool:
    return _LIKE_A_PATH.search(word) is not None and _OF_A_PROGRAM.search(word) is None


def _is_revision(word: str, complaint: str) -> bool:
    """Whether git misses a name of its own: a branch has slashes as a path has, but not the ending of a file."""
    lines = [line for line in complaint.splitlines() if word in line]
    told = all(_OF_REVISIONS.search(line.replace(word, "")) for line in lines)
    return told and (word.startswith("refs/") or _OF_A_FILE.search(word) is None)


def last_line(text: str) -> str | None:
    """The last line that says something: where programs and tracebacks put what went wrong."""
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), None)


def _hints(words: Sequence[str], roots: Roots, files: Files) -> list[str]:
    missing = [path for word in words[:_MOST_ACCUSED] if (path := _missing(word, roots, files)) is not None]
    return [explain_missing(path, roots, files) for path in dict.fromkeys(missing[:_MOST_HINTS])]


def _missing(word: str, roots: Roots, files: Files) -> Path | None:
    try:
        path = absolute(word, roots)
    except ToolError:
        return None
    return path if found_at(files, path) is None else None
