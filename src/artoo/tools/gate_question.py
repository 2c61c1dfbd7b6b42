"""The question about an act: complete, readable, and bound to the act by its digest."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from artoo.contracts.changes import Change, ChangeKind, path_bytes
from artoo.contracts.confirmation import AskedAct, ConfirmationRequest
from artoo.ports.sandbox import ActNote, StagedChanges
from artoo.tools.gate_words import word
from artoo.tools.paths import size_text
from artoo.tools.text_file import NotPlainFile, read_limited
from artoo.tools.threads import in_thread
from artoo.tools.unified import plain, unified
from artoo.world.decide import Decision

POLICY_KINDS: dict[ChangeKind, str] = {
    ChangeKind.CREATED: "create",
    ChangeKind.OVERWRITTEN: "edits",
    ChangeKind.DELETED: "delete",
    ChangeKind.DIRECTORY_REPLACED: "delete",
    ChangeKind.METADATA: "mode",
    ChangeKind.LINK: "link",
    ChangeKind.SPECIAL: "special",
}
"""What the policy language calls each kind of change."""

DIFF_BYTES = 32 * 1024
"""A file is small enough for a diff up to here, before and after."""


@dataclass(frozen=True, slots=True)
class Act:
    """What a tool was asked to do, for the person who decides: the tool, its input, and whether it failed.

    `source`: where its target first appeared, when the request does not name it. `note` is for the journal.
    """

    tool: str
    text: str
    failed: bool = False
    source: str | None = None
    language: str = "en"
    note: ActNote | None = None


async def question_about(staged: StagedChanges, decision: Decision, act: Act) -> ConfirmationRequest:
    """Asks about staged changes: first those that need a yes, each with its reason and a diff, then all others."""
    diffs = {change.path: await _diff(staged, change) for change, _ in decision.ask}
    acts = [
        AskedAct(verb=POLICY_KINDS[change.kind], target=change.path, sensitive=change.sensitive)
        for change, _ in decision.ask
    ]
    if decision.flood is not None:
        acts.append(AskedAct(verb="flood", target=decision.flood))
    return ConfirmationRequest(
        digest=staged.digest,
        title=_title(acts, act),
        details=tuple(_lines(staged.changes, decision, act, diffs)),
        source=act.source,
        acts=tuple(acts),
        language=act.language,
    )


def _title(acts: list[AskedAct], act: Act) -> str:
    """`shell: delete 2, overwrite 1`."""
    counted = Counter(one.verb for one in acts if one.verb != "flood")
    parts = [f"{word(kind, act.language)} {count}" for kind, count in counted.items()]
    parts += [one.target for one in acts if one.verb == "flood"]
    return f"{act.tool}: {', '.join(parts)}"


def _lines(
    changes: tuple[Change, ...], decision: Decision, act: Act, diffs: dict[str, tuple[str, ...]]
) -> Iterator[str]:
    for number, line in enumerate(act.text.splitlines() or [""]):
        yield f"$ {plain(line)}" if number == 0 else f"  {plain(line)}"
    if act.failed:
        yield word("the command failed, but changed this before", act.language)
    if decision.flood is not None:
        yield decision.flood
    asked = {change.path for change, _ in decision.ask}
    for change, reason in decision.ask:
        yield f"{_line(change, act.language)}: {word(reason, act.language)}"
        yield from (f"    {line}" for line in diffs[change.path])
    for change in changes:
        if change.path not in asked:
            yield f"{word('also', act.language)} {_line(change, act.language)}"


def _line(change: Change, language: str) -> str:
    """One change in one line: what happens, where, with which sizes."""
    what = word(POLICY_KINDS[change.kind], language)
    sizes = _sizes(change.size_before, change.size_after)
    return " ".join(filter(None, (what, change.path, sizes, plain(change.detail))))


def _sizes(before: int | None, after: int | None) -> str:
    if before is not None and after is not None:
        return f"({size_text(before)} → {size_text(after)})"
    known = after if before is None else before
    return "" if known is None else f"({size_text(known)})"


async def _diff(staged: StagedChanges, change: Change) -> tuple[str, ...]:
    """What changes in a small text file; nothing for others, whose sizes must do."""
    if change.kind not in (ChangeKind.CREATED, ChangeKind.OVERWRITTEN) or change.size_after is None:
        return ()
    if max(change.size_after, change.size_before or 0) > DIFF_BYTES:
        return ()
    after = await staged.content(change.path, DIFF_BYTES)
    before = b"" if change.size_before is None else await in_thread(_present, change.path)
    return () if after is None or before is None else await in_thread(unified, before, after)


def _present(path: str) -> bytes | None:
    try:
        return read_limited(Path(os.fsdecode(path_bytes(path))), DIFF_BYTES)[0]
    except (OSError, NotPlainFile):
        return None
