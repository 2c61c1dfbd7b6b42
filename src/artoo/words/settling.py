"""artoo's sentences about settled changes, in the user's language."""

from __future__ import annotations

from collections.abc import Sequence

from artoo.contracts.changes import Conflict
from artoo.contracts.settling import ChangeClass, ClassCount
from artoo.words.catalogue import Catalogue, in_language

CLASSES = {
    ChangeClass.DELETION: "deleted",
    ChangeClass.PERSISTENCE: "runs later by itself",
    ChangeClass.HISTORY: "history rewritten",
    ChangeClass.SPECIAL: "special file",
    ChangeClass.ELSEWHERE: "outside project and workspace",
    ChangeClass.LINK: "link",
    ChangeClass.MODE: "mode or owner",
    ChangeClass.EDIT: "edited",
    ChangeClass.SILENT: "new",
}
"""What a change of each class is called."""

_CONFLICTS_SHOWN = 5


def counted(counts: Sequence[ClassCount], text: Catalogue) -> str:
    """Return `2 deleted, 1 link, 3 edited`: how many of each class, most dangerous first."""
    return text(", ").join(part for one in counts for part in _parts(one, text))


def _parts(count: ClassCount, text: Catalogue) -> tuple[str, ...]:
    if told := rewritten(count, text):
        return (told,)
    other = {"moved": text("moved"), "harmless": text("harmless")}
    own = text(CLASSES[count.change_class])
    return tuple(f"{number:,} {other.get(name, own)}" for name, number in count.parts)


def rewritten(count: ClassCount, text: Catalogue) -> str:
    """Return `2 branches, 1 tag rewritten (11 commits)`; empty where git names neither."""
    parts = [text.count("{count} branch", "{count} branches", count.branches)] if count.branches else []
    parts += [text.count("{count} tag", "{count} tags", count.tags)] if count.tags else []
    if not parts:
        return ""
    lost = text.count(" ({count} commit)", " ({count} commits)", count.commits) if count.commits else ""
    return text("{what} rewritten", what=text(", ").join(parts)) + lost


def title(what: str, language: str, *, unfinished: bool) -> str:
    """Return the question in one line."""
    text = in_language(language)
    before = text("the task was not finished; ") if unfinished else ""
    return before + text("apply what the task changed: {what}", what=what)


def why_it_waits(conflicts: Sequence[Conflict], language: str, *others: str) -> str:
    """Return why changes are pending, apart from the approval that they need; empty if they only need that.

    How to approve them depends on the surface, which adds it.
    """
    return joined(*others, met(conflicts, language) if conflicts else "")


def waiting(reason: str, counts: Sequence[ClassCount], conflicts: int, language: str) -> str:
    """Return the reason and the counts of pending changes in one sentence, for a surface without a list.

    If only conflicts are left, the user's version stays in any case.
    """
    # New files need no approval, so they are counted only if nothing else is pending.
    loud = [each for each in counts if each.change_class is not ChangeClass.SILENT] or list(counts)
    text = in_language(language)
    what = counted(loud, text)
    if what:
        return joined(reason, text("pending your approval: {what}", what=what))
    return joined(reason, text("your version stays") if conflicts else "")


def dropped(language: str) -> str:
    """Say that the changes of which an answer speaks were discarded."""
    return in_language(language)("the changes were discarded; none of them took effect")


def not_yet(waits: str, language: str) -> str:
    """Say below an answer that its changes are pending. `waits`: see `waiting`."""
    return in_language(language)("Not done yet: {waits}", waits=waits)


def unfinished(language: str) -> str:
    """Say why changes that need no approval were not applied."""
    return in_language(language)("the task was not finished")


def kept_in_memory(language: str) -> str:
    """Warn that pending changes do not outlive the next start of the machine."""
    return in_language(language)("artoo's home (ARTOO_HOME) is in memory: what waits there is lost at a reboot")


def rest_by_hand(language: str) -> str:
    """Say that the user settled the rest while the task was interrupted."""
    return in_language(language)("you settled the rest while the task was cut off")


def met(conflicts: Sequence[Conflict], language: str) -> str:
    """Describe the conflicts."""
    text = in_language(language)
    shown = ", ".join(f"{one.path} ({one.reason})" for one in conflicts[:_CONFLICTS_SHOWN])
    more = len(conflicts) - _CONFLICTS_SHOWN
    rest = text(" and {count} more", count=more) if more > 0 else ""
    return text("in conflict with what is there now: {paths}", paths=shown + rest)


def joined(*parts: str) -> str:
    """Join the sentences that are not empty."""
    return "; ".join(part for part in parts if part)
