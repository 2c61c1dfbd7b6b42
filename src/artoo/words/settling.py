"""What is said about a settled difference, in the user's language."""

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
    """`2 branches, 1 tag rewritten (11 commits)`; empty where git names neither: the files are counted then."""
    parts = [text.count("{count} branch", "{count} branches", count.branches)] if count.branches else []
    parts += [text.count("{count} tag", "{count} tags", count.tags)] if count.tags else []
    if not parts:
        return ""
    lost = text.count(" ({count} commit)", " ({count} commits)", count.commits) if count.commits else ""
    return text("{what} rewritten", what=text(", ").join(parts)) + lost


def title(what: str, language: str, *, unfinished: bool) -> str:
    """The question in one line."""
    text = in_language(language)
    before = text("the task was not finished; ") if unfinished else ""
    return before + text("apply what the task changed: {what}", what=what)


def why_it_waits(conflicts: Sequence[Conflict], language: str, *others: str) -> str:
    """What there is to say beside the consent that it needs, and nothing of how that is given: whoever shows it
    knows what can be typed or called there. Empty where it only waits for consent."""
    return joined(*others, met(conflicts, language) if conflicts else "")


def waiting(reason: str, counts: Sequence[ClassCount], conflicts: int, language: str) -> str:
    """All of it in one sentence, for who is shown no list: the reason, and what consent is needed for.

    Where nothing but conflicts is left, what is there now stays, whatever is said.
    """
    loud = [each for each in counts if each.change_class is not ChangeClass.SILENT] or list(counts)
    text = in_language(language)
    what = counted(loud, text)
    if what:
        return joined(reason, text("waits for your consent: {what}", what=what))
    return joined(reason, text("what is there now stays") if conflicts else "")


def dropped(language: str) -> str:
    """Say that the changes of which an answer speaks were discarded."""
    return in_language(language)("the changes were discarded; none of them took effect")


def not_yet(waits: str, language: str) -> str:
    """What is said below an answer whose changes are pending: it may speak of them as done. `waits`: `waiting`."""
    return in_language(language)("Not done yet: {waits}", waits=waits)


def unfinished(language: str) -> str:
    """Why what could have been applied unasked was not."""
    return in_language(language)("the task was not finished")


def kept_in_memory(language: str) -> str:
    """What waits, and does not outlive the machine's next start."""
    return in_language(language)("artoo's home (ARTOO_HOME) is in memory: what waits there is lost at a reboot")


def rest_by_hand(language: str) -> str:
    """Of what was applied only a part is told: what became of the rest after that."""
    return in_language(language)("you settled the rest while the task was cut off")


def met(conflicts: Sequence[Conflict], language: str) -> str:
    """What stands in the way."""
    text = in_language(language)
    shown = ", ".join(f"{one.path} ({one.reason})" for one in conflicts[:_CONFLICTS_SHOWN])
    more = len(conflicts) - _CONFLICTS_SHOWN
    rest = text(" and {count} more", count=more) if more > 0 else ""
    return text("in conflict with what is there now: {paths}", paths=shown + rest)


def joined(*parts: str) -> str:
    """Sentences that are there, one after the other."""
    return "; ".join(part for part in parts if part)
