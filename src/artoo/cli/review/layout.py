"""A review as lines of text. What is dangerous is named path by path and never folded; every line is printable."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from artoo.cli.display.colors import Paint, Tone
from artoo.cli.display.line_wrap import rows_of
from artoo.cli.display.sanitize import one_line
from artoo.cli.results.relative_paths import Here
from artoo.contracts.changes import ChangeKind, outermost
from artoo.contracts.settling import (
    BY_NAME,
    ChangeClass,
    ClassCount,
    ClassifiedChange,
    Review,
    arrived,
    count_of,
    crowds,
    implied,
    in_order_of_danger,
    is_gits,
)
from artoo.tools.approval.messages import why, word
from artoo.tools.files.unified_diff import plain
from artoo.words.catalogue import Catalogue, in_language
from artoo.words.repositories import Group, apart, group_of, is_object, meaning, names_first, objects_of, told
from artoo.words.settling import CLASSES, counted

MOST_NAMED = 12
"""Paths of a harmless class that stand in the overview; the rest are counted there, and are all in the diff."""

MOST_BESIDE = 5
"""Paths of a dangerous class that are named beside the question; all of them stand above it."""

ROWS_BESIDE = 3
"""Rows that a class may take there: all classes and the question fit on the smallest usual screen."""

LONGEST_BESIDE = 60
"""Characters of a path there, and of what it means."""

SIGNS: dict[ChangeClass, tuple[str, Tone]] = {
    ChangeClass.DELETION: ("-", Tone.DANGER),
    ChangeClass.PERSISTENCE: ("!", Tone.DANGER),
    ChangeClass.HISTORY: ("!", Tone.DANGER),
    ChangeClass.SPECIAL: ("!", Tone.DANGER),
    ChangeClass.ELSEWHERE: ("^", Tone.WAITS),
    ChangeClass.LINK: (">", Tone.WAITS),
    ChangeClass.MODE: ("%", Tone.WAITS),
    ChangeClass.EDIT: ("~", Tone.WAITS),
    ChangeClass.SILENT: ("+", Tone.MADE),
}
"""The sign and the tone of each class: the words beside them say the same."""


@dataclass(frozen=True, slots=True)
class Layout:
    """How a review is laid out, and the review: `width` columns, paths as seen from `here`.

    `opened_by` is the command that shows what is in a directory; with it, a new one with a crowd in it is one line.
    `unfolded`: git's objects have a line each.
    """

    review: Review
    language: str
    here: Here
    paint: Paint
    width: int
    opened_by: str = ""
    unfolded: bool = False
    _arrived: Mapping[str, str] = field(init=False, repr=False)
    _implied: frozenset[str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_arrived", arrived(self.review.changes))
        object.__setattr__(self, "_implied", implied(self.review.changes))

    @property
    def words(self) -> Catalogue:
        """The sentences."""
        return in_language(self.language)

    @property
    def blocked(self) -> frozenset[str]:
        """Paths that a yes does not apply."""
        return frozenset(one.path for one in self.review.conflicts)

    @property
    def applicable(self) -> tuple[ClassifiedChange, ...]:
        """What a yes would apply, most dangerous first."""
        return tuple(one for one in in_order_of_danger(self.review.changes) if one.path not in self.blocked)

    def head(self) -> list[str]:
        """What is asked, and how many changes of each class it is about."""
        unfinished = "This task did not reach its end. Apply what it changed all the same?"
        head = self.words(unfinished if self.review.unfinished else "Apply what this task changed?")
        counts = counted(self.review.counts, self.words)
        return [self.paint(f"? {head}", Tone.HEAD), *([f"  {counts}"] if counts else [])]

    def whole(self) -> list[str]:
        """The review in one piece: every change with its diff, once."""
        return [*self.head(), *self.diffs(), *self.conflicts(), *self.went_out()]

    def overview(self) -> list[str]:
        """The counts, what is dangerous path by path, the others shortly, conflicts, and what went out."""
        lines = self.head()
        for change_class in ChangeClass:
            of_class = [one for one in self.applicable if one.change_class is change_class]
            found, repositories = self.told_apart(of_class)
            shown = found if change_class in BY_NAME else found[:MOST_NAMED]
            lines += self.lines(shown)
            if len(found) > len(shown):
                more = f"{len(found) - len(shown):,}"
                lines.append("    " + self.words("and {count} more; all are in the diff", count=more))
            lines += repositories
        return [*lines, *self.conflicts(), *self.went_out()]

    def told_apart(self, changes: Iterable[ClassifiedChange]) -> tuple[list[ClassifiedChange], list[str]]:
        """Those that get a line each, and a line for each repository; without what other lines say already."""
        found, repositories = apart(one for one in changes if one.path not in self._implied)
        return found, [self._repository(group, inside) for group, inside in repositories.items()]

    def beside(self) -> list[str]:
        """What is dangerous, for where the person answers: one line a class, never so many that one scrolls away.

        Every class has its count and its first paths, so that no loss is hidden by however many others.
        """
        lines: list[str] = []
        for change_class in ChangeClass:
            found = [one for one in self.applicable if one.change_class is change_class]
            if found and change_class in BY_NAME:
                lines.append(self._counted(change_class, found))
        return [self.paint(self.words("Look at these one by one:"), Tone.DANGER), *lines] if lines else []

    def _counted(self, change_class: ChangeClass, found: Sequence[ClassifiedChange]) -> str:
        sign, tone = SIGNS[change_class]
        head = self.paint(f"{sign} {counted([count_of(change_class, found)], self.words)}", tone)
        line = ""
        for count in range(min(len(found), MOST_BESIDE), 0, -1):
            names = [self._name(one) for one in names_first(found)[:count]]
            if len(found) > count:
                names.append(self.words("and {count} more", count=f"{len(found) - count:,}"))
            line = f"  {head}  {self.words(', ').join(names)}"
            if rows_of([line], self.width) <= ROWS_BESIDE:
                break
        return line

    def _name(self, change: ClassifiedChange) -> str:
        """The path, its middle left out where it is very long, and what it means."""
        path = self.here.short(change.path)
        if len(path) > LONGEST_BESIDE:
            path = f"{path[: LONGEST_BESIDE // 2 - 2]}...{path[1 - LONGEST_BESIDE // 2 :]}"
        named = plain(meaning(change, self.language))[:LONGEST_BESIDE]
        return f"{path} ({named})" if named else path

    def lines(self, changes: Sequence[ClassifiedChange]) -> list[str]:
        """A line for each; a repository's reason is told once, where its files stand one after the other."""
        before = (None, *changes)
        return [self.line(one, last=last) for last, one in zip(before, changes, strict=False)]

    def line(
        self, change: ClassifiedChange, number: int | None = None, last: ClassifiedChange | None = None
    ) -> str:
        """One change: sign, class, path, sizes, and why it needs a yes. Never shortened, but for a reason that the
        `last` line has told.
        """
        sign, tone = SIGNS[change.change_class]
        named_class = self.words(CLASSES[change.change_class])
        made = change.kind in (ChangeKind.CREATED, ChangeKind.LINK) and not is_gits(change.path)
        came_from = self._arrived.get(change.path)
        if change.change_class is ChangeClass.SILENT and not made:
            named_class = self.words("harmless")
        if change.moved_to is not None:
            named_class = self.words("moved")
        if came_from is not None:
            named_class = self.words("moved here")
        head = f"{sign} {named_class}"
        where = self.here.short(change.path)
        named = plain(meaning(change, self.language))
        about = [part for part in (named, self._sizes(change), plain(change.detail)) if part]
        about += [self.words("from {path}", path=self.here.short(came_from))] if came_from is not None else []
        plainly_gone = change.change_class is ChangeClass.DELETION and change.kind is ChangeKind.DELETED
        if change.reason and not plainly_gone:  # of what is deleted the class says it all
            known = change.rewrites is not None and last is not None and last.rewrites == change.rewrites
            same = known and last is not None and last.reason == change.reason
            about.append(self.words("as above") if same else plain(why(change, self.language, self.here.short)))
        rest = f" ({'; '.join(about)})" if about else ""
        count = f"{number:>4} " if number is not None else ""
        return f"  {count}{self.paint(head, tone)}  {where}{rest}"

    def _repository(self, group: Group, changes: Sequence[ClassifiedChange]) -> str:
        """What is harmless in one repository, or its objects, as what it means."""
        where, change_class = group
        sign, tone = SIGNS[change_class]
        named_class = "git" if change_class is ChangeClass.SILENT else self.words(CLASSES[change_class])
        head = self.paint(f"{sign} {named_class}", tone)
        return f"  {head}  {self.here.short(where)}: {plain(told(changes, self.language))}"

    def diffs(self) -> list[str]:
        """Every change with its diff, most dangerous first."""
        lines: list[str] = []
        crowded = crowds(self.applicable) if self.opened_by else {}
        objects = {} if self.unfolded else objects_of(self.applicable)
        last: ClassifiedChange | None = None
        for change in self.applicable:
            together = objects.get(group_of(change), []) if is_object(change) else []
            if together:
                lines += [self._repository(group_of(change), together)] if change is together[0] else []
                continue
            if change.change_class is ChangeClass.SILENT and outermost(change.path, crowded):
                continue
            lines.append(self.line(change, last=last))
            last = change
            lines += [self._diff_line(line) for line in change.diff]
            if not change.diff and change.change_class is ChangeClass.EDIT and change.moved_to is None:
                lines.append(f"      {self.words('(no text, or too long to be shown)')}")
        return [*lines, *(self._crowd(place, files) for place, files in crowded.items())]

    def _crowd(self, place: str, files: int) -> str:
        """A new directory with so much in it that nobody reads it unless they mean to."""
        sign, tone = SIGNS[ChangeClass.SILENT]
        where = self.here.short(place)
        about = self.words(
            "{count} new files; see them: {command}",
            count=f"{files:,}",
            command=f"{self.opened_by} {shlex.quote(where)}",
        )
        return f"  {self.paint(f'{sign} {self.words(CLASSES[ChangeClass.SILENT])}', tone)}  {where}/ ({about})"

    def has_diffs(self) -> bool:
        """Whether there is more to see than the overview shows."""
        return any(one.diff for one in (*self.review.changes, *self.review.conflicts)) or any(
            sum(one.change_class is each for one in self.applicable) > MOST_NAMED
            for each in ChangeClass
            if each not in BY_NAME
        )

    def conflicts(self) -> list[str]:
        """What the person changed meanwhile, in both versions."""
        if not self.review.conflicts:
            return []
        head = self.words("Changed meanwhile, so not applied (what is there now stays):")
        lines = [self.paint(f"  {head}", Tone.WAITS)]
        for one in self.review.conflicts:
            reason = plain(word(one.reason, self.language))
            lines.append(f"    {self.here.short(one.path)}: {reason}")
            gone = "- what is there now; the task deleted it"
            versions = self.words(gone if one.deleted else "- what is there now, + the task's")
            lines += [f"      {versions}"] if one.diff or one.deleted else []
            lines += [self._diff_line(line) for line in one.diff]
        return lines

    def went_out(self) -> list[str]:
        """What left the machine."""
        if not self.review.went_out:
            return []
        shown = [f"    {one_line(line)}" for line in self.review.went_out]
        head = self.words("Already sent, and not taken back by discarding:")
        return [self.paint(f"  {head}", Tone.WAITS), *shown]

    def _sizes(self, change: ClassifiedChange) -> str:
        sizes = [size for size in (change.size_before, change.size_after) if size is not None]
        return " > ".join(f"{size:,} B" for size in sizes)

    def _diff_line(self, line: str) -> str:
        tone = {"+": Tone.MADE, "-": Tone.LOST, "@": Tone.PLACE}.get(line[:1])
        text = f"      {plain(line)}"
        return text if tone is None else self.paint(text, tone)


def waiting_line(counts: Sequence[ClassCount], conflicts: int, words: Catalogue) -> str:
    """The same of what waits, with what is in conflict beside it."""
    parts = [counted(counts, words)]
    if conflicts:
        parts.append(words("{count} in conflict with what was changed meanwhile", count=f"{conflicts:,}"))
    return words(", ").join(filter(None, parts))


def conflict_hint(name: str, words: Catalogue) -> str:
    """What can be done where nothing but conflicts is left of the task of that name."""
    return words(
        "what is there now stays; take what you want of the task's by hand: {look}; then drop it: {drop}",
        look=f"artoo diff {name}",
        drop=f"artoo discard {name}",
    )
