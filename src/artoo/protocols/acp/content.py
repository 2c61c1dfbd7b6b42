"""Convert an editor's prompt to a request, and diffs to the editor's hunks and locations."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from urllib.parse import unquote, urlsplit

from acp.helpers import ToolCallContentVariant, text_block, tool_content, tool_diff_content
from acp.schema import ResourceContentBlock, TextContentBlock, ToolCallLocation

from artoo.contracts.changes import ChangeKind, path_bytes
from artoo.contracts.errors import ConfigurationError
from artoo.contracts.settling import ClassifiedChange
from artoo.protocols.reports import MOST_DIFF, MOST_LISTED
from artoo.redaction import Redactor


def request_of(blocks: Sequence[object]) -> str:
    """Return a prompt as text, in which a mentioned file is replaced by its path. Raises ConfigurationError for
    parts of any other kind.

    The contents of files that an editor puts into the prompt are not included, because they are data and not the
    user's own words.
    """
    return "".join(map(_words, blocks)).strip()


def _words(block: object) -> str:
    if isinstance(block, TextContentBlock):
        return block.text
    if isinstance(block, ResourceContentBlock):
        address = urlsplit(block.uri)
        return unquote(address.path) if address.scheme == "file" else block.uri
    kind = str(getattr(block, "type", type(block).__name__))
    raise ConfigurationError(
        f"a prompt's part of the kind {kind!r} cannot be read; send text and mentions of files"
    )


def hunks(diff: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the text before and the text after each hunk of a unified diff."""
    before, after = list[str](), list[str]()
    for line in diff:
        if line.startswith("@@"):
            if before or after:
                yield _text(before), _text(after)
            before, after = [], []
            continue
        if line[:1] in (" ", "-"):
            before.append(line[1:])
        if line[:1] in (" ", "+"):
            after.append(line[1:])
    if before or after:
        yield _text(before), _text(after)


def shown(changes: Iterable[ClassifiedChange], clean: Redactor) -> list[ToolCallContentVariant]:
    """Convert changes to content for an editor. It consists of hunks, and of a line for each change without hunks.

    The order of the changes is kept. Changes beyond the limits are only counted.
    """
    found: list[ToolCallContentVariant] = []
    room, left_out = MOST_DIFF, 0
    for one in changes:
        made = _hunks(one, clean) or [tool_content(text_block(clean.text(_line(one))))]
        size = sum(map(len, one.diff))
        if size > room or len(found) + len(made) > MOST_LISTED:
            left_out += 1
            continue
        room -= size
        found += made
    if left_out:
        found.append(tool_content(text_block(f"{left_out} more changes are not shown here; artoo diff shows them")))
    return found


def locations(paths: Iterable[str]) -> list[ToolCallLocation]:
    """Return absolute printable paths in the form of ACP's locations, which an editor can open. Names that are no
    text are left out."""
    found = (_path(path) for path in islice(paths, MOST_LISTED))
    return [ToolCallLocation(path=path) for path in found if path is not None]


def _hunks(change: ClassifiedChange, clean: Redactor) -> list[ToolCallContentVariant]:
    path = _path(change.path)
    if path is None:
        return []
    made = change.kind is ChangeKind.CREATED
    return [
        tool_diff_content(path, clean.text(after), None if made else clean.text(before))
        for before, after in hunks(change.diff)
    ]


def _line(change: ClassifiedChange) -> str:
    sizes = [str(size) for size in (change.size_before, change.size_after) if size is not None]
    parts = (change.kind.value, change.path, change.detail, f"({' → '.join(sizes)} bytes)" if sizes else "")
    return " ".join(part for part in parts if part)


def _path(printable: str) -> str | None:
    path = os.fsdecode(path_bytes(printable))
    usable = path.startswith("/") and all(not "\ud800" <= one <= "\udfff" for one in path)
    return path if usable else None


def _text(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
