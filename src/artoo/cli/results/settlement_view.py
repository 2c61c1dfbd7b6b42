"""What became of a task's changes, for a person: files as they were settled, and what waits with what to type."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from artoo.cli.display.colors import Paint, Tone
from artoo.cli.display.sanitize import one_line
from artoo.cli.display.symbols import Marks
from artoo.cli.results.relative_paths import PATHS_SHOWN, Here, on_one_line
from artoo.cli.review.layout import conflict_hint, waiting_line
from artoo.contracts.changes import ChangeKind, Conflict
from artoo.contracts.settling import ChangeClass, ClassifiedChange, Settled, implied
from artoo.tools.files.unified_diff import plain
from artoo.words.catalogue import Catalogue
from artoo.words.repositories import apart, told


def from_here(reason: str, conflicts: Sequence[Conflict], here: Here, language: str) -> str:
    """A reason that says what is in conflict, with its paths as this person reads them."""
    from artoo.words.settling import met

    if not conflicts:
        return reason
    short = [one.model_copy(update={"path": here.short(one.path)}) for one in conflicts]
    return reason.replace(met(conflicts, language), met(short, language))


def _only_times(change: ClassifiedChange) -> bool:
    """A file that was written as it was, or touched: nobody who reads its name would find anything changed."""
    return change.kind is ChangeKind.METADATA and change.change_class is ChangeClass.SILENT


def _depth(path: str) -> int:
    return path.count("/")


@dataclass(frozen=True, slots=True)
class SettledLines:
    """`name` is the beginning of the task's id that is enough to name it."""

    settled: Settled
    text: Catalogue
    marks: Marks
    name: str
    here: Here
    paint: Paint

    def lines(self) -> Iterable[str]:
        """Files, what waits, and what left the machine."""
        yield from self._files()
        yield from self._waits()
        if self.settled.went_out:
            yield self.paint(self.text("Already sent, and not taken back by discarding:"), Tone.WAITS)
        yield from (f"  {one_line(sent)}" for sent in self.settled.went_out)

    def _files(self) -> Iterable[str]:
        """The files that were made, changed and removed for good, and how to take that back."""
        settled = self.settled
        listed = {one.path for one in settled.changes} if settled.state == "applied" else set[str]()
        before = [path for path in settled.applied if path not in listed]
        if before:
            yield f"{self.text('Applied:')} {on_one_line(before, self.here, self.text)}"
        if settled.state == "applied":
            yield from self._changes()
        if before or (settled.state == "applied" and not all(map(_only_times, settled.changes))):
            command = self.paint(f"artoo undo {self.name}", Tone.HEAD)
            yield "  " + self.text("put it back: {command}", command=command)

    def _changes(self) -> Iterable[str]:
        settled = self.settled
        told_elsewhere = implied(settled.changes)
        files, repositories = apart(one for one in settled.changes if one.path not in told_elsewhere)
        moved = {one.path: one.moved_to for one in files if one.moved_to is not None}
        files = [one for one in files if one.path not in moved and not _only_times(one)]
        made = [one.path for one in files if one.kind is ChangeKind.CREATED]
        removed = [one.path for one in files if one.kind is ChangeKind.DELETED]
        taken = {*made, *removed}
        changed = [one.path for one in files if one.path not in taken]
        for head, paths, rest in (
            (self.text("Made:"), made, settled.unlisted),
            (self.text("Changed:"), changed, 0),
            (self.text("Removed:"), removed, 0),
        ):
            if paths or rest:
                yield f"{head} {on_one_line(paths, self.here, self.text, rest)}"
        if moved:
            yield f"{self.text('Moved:')} {self._moves(moved)}"
        for (where, _), changes in repositories.items():
            yield f"git {self.here.short(where)}: {plain(told(changes, self.text.language))}"

    def _moves(self, moved: Mapping[str, str]) -> str:
        """From where to where; what lies in a directory that is moved goes with it."""
        whole = [path for path in sorted(moved, key=_depth) if path.rpartition("/")[0] not in moved]
        shown = [f"{self.here.short(path)} {self.marks.arrow} {self.here.short(moved[path])}" for path in whole]
        more = len(shown) - PATHS_SHOWN
        rest = [self.text("and {count} more", count=f"{more:,}")] if more > 0 else []
        return ", ".join((*shown[:PATHS_SHOWN], *rest))

    def _waits(self) -> Iterable[str]:
        """What waits for a yes, and the one command to type."""
        changes = self.settled
        if changes.reason:
            yield one_line(from_here(changes.reason, changes.conflicts, self.here, self.text.language))
        if not changes.waits:
            return
        what = waiting_line(changes.counts, len(changes.conflicts), self.text)
        if changes.only_conflicts:
            yield self.paint(what, Tone.WAITS)
            others = [conflict_hint(self.name, self.text)]
        else:
            yield self.paint(self.text("Waits for your yes: {what}", what=what), Tone.WAITS)
            rest = " --rest" if changes.conflicts else ""  # without it nothing at all would be applied
            command = self.paint(f"artoo apply {self.name}{rest}", Tone.HEAD)
            yield "  " + self.text("apply it: {command}", command=command)
            others = [
                self.text("look at it: {command}", command=f"artoo diff {self.name}"),
                self.text("drop it: {command}", command=f"artoo discard {self.name}"),
            ]
        if changes.expires_at is not None:
            date = datetime.fromtimestamp(changes.expires_at).astimezone().strftime("%Y-%m-%d")
            others.append(self.text("kept until {date}", date=date))
        yield f"  {self.marks.dot.join(others)}"
