"""The text of a review, with signs and colours by class, diffs, and the most paths of a harmless class.

Each dangerous change is listed with its path. Such changes are summarised only if a new directory contains many of
them. Every line is printable.
"""

from __future__ import annotations

import shlex
from collections import Counter
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
from artoo.tools.files.unified_diff import plain
from artoo.words.catalogue import Catalogue, in_language, word
from artoo.words.repositories import Group, apart, group_of, is_object, meaning, names_first, objects_of, told
from artoo.words.settling import CLASSES, counted, why

MOST_NAMED = 12
"""Maximum number of paths of a harmless class in the overview. Further ones are only counted. The diff contains all
of them."""

MOST_BESIDE = 5
"""Maximum number of paths of a dangerous class that are repeated close to the question. The complete list is above
the question."""

ROWS_BESIDE = 3
"""Maximum number of rows for a class in this repetition, so that all classes and the question fit on a small
screen."""

LONGEST_BESIDE = 60
"""Maximum number of characters of a path in this repetition, and of its meaning."""

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
"""The sign and the tone of each class of changes. They are always shown together with the name of the class."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The layout of a review. It is for `width` columns, and its paths are relative to `here`.

    `opened_by` is the command that lists the files of a directory. If it is given, a new directory with many new
    files is shown as one line. `unfolded`: true if each object of git has a line of its own.
    """

    review: Review
    language: str
    here: Here
    paint: Paint
    width: int
    opened_by: str = ""
    unfolded: bool = False
    _arrived: Mapping[str, str] = field(init=False, repr=False)
    _crowds: Mapping[str, int] = field(init=False, repr=False)
    _started: Mapping[str, int] = field(init=False, repr=False)
    _implied: frozenset[str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_arrived", arrived(self.review.changes))
        object.__setattr__(self, "_implied", implied(self.review.changes))
        crowded = {} if self.unfolded else crowds(self.applicable)
        started = (one for one in self.applicable if one.change_class is ChangeClass.PERSISTENCE)
        places = Counter(outermost(one.path, crowded) for one in started)
        many = {place: count for place, count in places.items() if place and count > MOST_NAMED}
        # Files that have a line of their own do not count.
        counts = {place: files - (0 if place in many else places[place]) for place, files in crowded.items()}
        object.__setattr__(self, "_crowds", counts)
        object.__setattr__(self, "_started", many)

    @property
    def words(self) -> Catalogue:
        """Return the message catalogue for the language."""
        return in_language(self.language)

    @property
    def blocked(self) -> frozenset[str]:
        """Return the paths in conflict. An approval does not apply them."""
        return frozenset(one.path for one in self.review.conflicts)

    @property
    def applicable(self) -> tuple[ClassifiedChange, ...]:
        """Return the changes that an approval would apply, the most dangerous first."""
        return tuple(one for one in in_order_of_danger(self.review.changes) if one.path not in self.blocked)

    def head(self) -> list[str]:
        """Return the lines with the question and with the number of changes in each class."""
        unfinished = "This task did not finish. Apply its changes anyway?"
        head = self.words(unfinished if self.review.unfinished else "Apply the changes of this task?")
        counts = counted(self.review.counts, self.words)
        return [self.paint(f"? {head}", Tone.HEAD), *([f"  {counts}"] if counts else [])]

    def whole(self) -> list[str]:
        """Return the lines of the whole review, with every change once and with its diff."""
        return [*self.head(), *self.diffs(), *self.conflicts(), *self.went_out()]

    def overview(self) -> list[str]:
        """Return lines with the number of changes, each dangerous path, a selection of the other paths, the
        conflicts, and the data that were sent."""
        lines = self.head()
        for change_class in ChangeClass:
            of_class = [one for one in self.applicable if one.change_class is change_class]
            found, repositories = self.told_apart(of_class)
            if change_class is ChangeClass.PERSISTENCE:
                found = [one for one in found if not outermost(one.path, self._started)]
                lines += [self._crowd(place) for place in self._started]
            shown = found if change_class in BY_NAME else found[:MOST_NAMED]
            lines += self.lines(shown)
            if len(found) > len(shown):
                more = f"{len(found) - len(shown):,}"
                lines.append("    " + self.words("and {count} more; all are in the diff", count=more))
            lines += repositories
        return [*lines, *self.conflicts(), *self.went_out()]

    def told_apart(self, changes: Iterable[ClassifiedChange]) -> tuple[list[ClassifiedChange], list[str]]:
        """Return the changes that have a line of their own. The other changes of each repository share one line."""
        found, repositories = apart(one for one in changes if one.path not in self._implied)
        return found, [self._repository(group, inside) for group, inside in repositories.items()]

    def beside(self) -> list[str]:
        """Return lines that repeat the dangerous changes close to the question, with one entry for each class, so
        that they stay visible.

        Every class has its number and its first paths, so that many changes cannot hide another class.
        """
        lines: list[str] = []
        for change_class in ChangeClass:
            found = [one for one in self.applicable if one.change_class is change_class]
            if found and change_class in BY_NAME:
                lines.append(self._counted(change_class, found))
        return [self.paint(self.words("Check these one by one:"), Tone.DANGER), *lines] if lines else []

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
        """Return a path and its meaning. A path that is very long is shortened in its middle."""
        path = self.here.short(change.path)
        if len(path) > LONGEST_BESIDE:
            path = f"{path[: LONGEST_BESIDE // 2 - 2]}...{path[1 - LONGEST_BESIDE // 2 :]}"
        named = plain(meaning(change, self.language))[:LONGEST_BESIDE]
        return f"{path} ({named})" if named else path

    def lines(self, changes: Sequence[ClassifiedChange]) -> list[str]:
        """Return a line for each change. If changes that follow one another have the same reason, the reason is
        shown once."""
        before = (None, *changes)
        return [self.line(one, last=last) for last, one in zip(before, changes, strict=False)]

    def line(
        self, change: ClassifiedChange, number: int | None = None, last: ClassifiedChange | None = None
    ) -> str:
        """Return the line for one change, with its sign, class, path and sizes, and the reason why it needs
        approval.

        The line is never shortened, but it does not repeat the reason if the change `last` has the same one.
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
        # A deletion needs no reason, because its class already says what it is.
        if change.reason and not plainly_gone:
            # A rebase changes many files of git for the same reason, which is shown once.
            known = change.rewrites is not None and last is not None and last.rewrites == change.rewrites
            same = known and last is not None and last.reason == change.reason
            about.append(self.words("as above") if same else plain(why(change, self.language, self.here.short)))
        rest = f" ({'; '.join(about)})" if about else ""
        count = f"{number:>4} " if number is not None else ""
        return f"  {count}{self.paint(head, tone)}  {where}{rest}"

    def _repository(self, group: Group, changes: Sequence[ClassifiedChange]) -> str:
        """Describe the harmless changes, or the git objects, of one repository in one line."""
        where, change_class = group
        sign, tone = SIGNS[change_class]
        named_class = "git" if change_class is ChangeClass.SILENT else self.words(CLASSES[change_class])
        head = self.paint(f"{sign} {named_class}", tone)
        return f"  {head}  {self.here.short(where)}: {plain(told(changes, self.language))}"

    def diffs(self) -> list[str]:
        """Return the lines for every change with its diff, the most dangerous change first."""
        lines: list[str] = []
        crowded: Mapping[str, int] = self._crowds if self.opened_by else dict[str, int]()
        objects = {} if self.unfolded else objects_of(self.applicable)
        last: ClassifiedChange | None = None
        for change in self.applicable:
            together = objects.get(group_of(change), []) if is_object(change) else []
            # All objects of one repository have one line, which is at the place of the first of them.
            if together:
                lines += [self._repository(group_of(change), together)] if change is together[0] else []
                continue
            place = outermost(change.path, crowded)
            silent = change.change_class is ChangeClass.SILENT
            if place and (silent or (change.change_class is ChangeClass.PERSISTENCE and place in self._started)):
                continue
            lines.append(self.line(change, last=last))
            last = change
            lines += [self._diff_line(line) for line in change.diff]
            if not change.diff and change.change_class is ChangeClass.EDIT and change.moved_to is None:
                lines.append(f"      {self.words('(not text, or too long to show)')}")
        return [*lines, *map(self._crowd, crowded)]

    def _crowd(self, place: str) -> str:
        """Return one line for a new directory with many new files, and with the number of files that start later.

        The line has the class of these files if they are too many to be listed, as in an environment of Python.
        """
        started = self._started.get(place, 0)
        change_class = ChangeClass.PERSISTENCE if started else ChangeClass.SILENT
        sign, tone = SIGNS[change_class]
        where = self.here.short(place)
        about = [self.words("{count} new files", count=f"{self._crowds[place]:,}")]
        about += (
            [self.words("{count} of them may start by themselves later", count=f"{started:,}")] if started else []
        )
        if self.opened_by:
            about.append(self.words("see them: {command}", command=f"{self.opened_by} {shlex.quote(where)}"))
        return f"  {self.paint(f'{sign} {self.words(CLASSES[change_class])}', tone)}  {where}/ ({'; '.join(about)})"

    def has_diffs(self) -> bool:
        """Return whether the diffs show more than the overview does."""
        return any(one.diff for one in (*self.review.changes, *self.review.conflicts)) or any(
            sum(one.change_class is each for one in self.applicable) > MOST_NAMED
            for each in ChangeClass
            if each not in BY_NAME
        )

    def conflicts(self) -> list[str]:
        """Return the lines for the conflicts, each with the user's version and the task's version."""
        if not self.review.conflicts:
            return []
        head = self.words("In conflict, so not applied (your version stays):")
        lines = [self.paint(f"  {head}", Tone.WAITS)]
        for one in self.review.conflicts:
            reason = plain(word(one.reason, self.language))
            lines.append(f"    {self.here.short(one.path)}: {reason}")
            gone = "- your version; the task deleted the file"
            versions = self.words(gone if one.deleted else "- your version, + the task's version")
            lines += [f"      {versions}"] if one.diff or one.deleted else []
            lines += [self._diff_line(line) for line in one.diff]
        return lines

    def went_out(self) -> list[str]:
        """List the data that were sent from this machine."""
        if not self.review.went_out:
            return []
        shown = [f"    {one_line(line)}" for line in self.review.went_out]
        head = self.words("Already sent; discarding does not undo it:")
        return [self.paint(f"  {head}", Tone.WAITS), *shown]

    def _sizes(self, change: ClassifiedChange) -> str:
        sizes = [size for size in (change.size_before, change.size_after) if size is not None]
        return " > ".join(f"{size:,} B" for size in sizes)

    def _diff_line(self, line: str) -> str:
        tone = {"+": Tone.MADE, "-": Tone.LOST, "@": Tone.PLACE}.get(line[:1])
        text = f"      {plain(line)}"
        return text if tone is None else self.paint(text, tone)


def waiting_line(counts: Sequence[ClassCount], conflicts: int, words: Catalogue) -> str:
    """Return one line with the number of pending changes in each class, and the number of conflicts."""
    parts = [counted(counts, words)]
    if conflicts:
        parts.append(words("{count} in conflict with later changes", count=f"{conflicts:,}"))
    return words(", ").join(filter(None, parts))


def conflict_hint(name: str, words: Catalogue) -> str:
    """Return advice about a task of which all pending changes are in conflict."""
    return words(
        "your version stays; copy parts of the task's version by hand: {look}; then discard it: {drop}",
        look=f"artoo diff {name}",
        drop=f"artoo discard {name}",
    )
