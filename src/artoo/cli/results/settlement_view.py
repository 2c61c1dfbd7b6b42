"""The lines about applied and pending changes of a task, with conflicts and the commands to type."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from artoo.cli.display.colors import Paint, Tone
from artoo.cli.display.sanitize import one_line
from artoo.cli.display.symbols import ARROW, DOT
from artoo.cli.results.relative_paths import PATHS_SHOWN, Here, on_one_line
from artoo.cli.review.layout import conflict_hint, waiting_line
from artoo.contracts.changes import ChangeKind, Conflict
from artoo.contracts.settling import ChangeClass, ClassifiedChange, Settled, implied
from artoo.runtime.changes.settlement_history import Afterwards, Became
from artoo.tools.files.unified_diff import plain
from artoo.words.catalogue import Catalogue, in_language
from artoo.words.repositories import apart, told
from artoo.words.settling import counted
from artoo.words.shown import local_time


def from_here(reason: str, conflicts: Sequence[Conflict], here: Here, language: str) -> str:
    """Replace the paths in a reason by short paths. The reason names paths in conflict."""
    from artoo.words.settling import met

    if not conflicts:
        return reason
    short = [one.model_copy(update={"path": here.short(one.path)}) for one in conflicts]
    return reason.replace(met(conflicts, language), met(short, language))


def _only_times(change: ClassifiedChange) -> bool:
    """Return whether only metadata, such as times, were changed, which a user would not notice."""
    return change.kind is ChangeKind.METADATA and change.change_class is ChangeClass.SILENT


def _depth(path: str) -> int:
    return path.count("/")


@dataclass(frozen=True, slots=True)
class SettledLines:
    """The lines about the changes of a task. `name` is a beginning of the task's id that is unique."""

    settled: Settled
    text: Catalogue
    name: str
    here: Here
    paint: Paint

    def lines(self) -> Iterable[str]:
        """Yield lines about the applied files, the pending changes, and the data that were sent from this
        machine."""
        yield from self._files()
        yield from self._waits()
        if self.settled.went_out:
            yield self.paint(self.text("Already sent; discarding does not undo it:"), Tone.WAITS)
        yield from (f"  {one_line(sent)}" for sent in self.settled.went_out)

    def _files(self) -> Iterable[str]:
        """Yield the files that were created, changed and removed, and the command that undoes these changes."""
        settled = self.settled
        listed = {one.path for one in settled.changes} if settled.state == "applied" else set[str]()
        before = [path for path in settled.applied if path not in listed]
        if before:
            yield f"{self.text('Applied:')} {on_one_line(before, self.here, self.text)}"
        if settled.state == "applied":
            yield from self._changes()
        if before or (settled.state == "applied" and not all(map(_only_times, settled.changes))):
            command = self.paint(f"artoo undo {self.name}", Tone.HEAD)
            yield "  " + self.text("undo it: {command}", command=command)

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
        """List the paths that were moved. If a directory was moved, the files in it are left out."""
        whole = [path for path in sorted(moved, key=_depth) if path.rpartition("/")[0] not in moved]
        shown = [f"{self.here.short(path)} {ARROW} {self.here.short(moved[path])}" for path in whole]
        more = len(shown) - PATHS_SHOWN
        rest = [self.text("and {count} more", count=f"{more:,}")] if more > 0 else []
        return ", ".join((*shown[:PATHS_SHOWN], *rest))

    def _waits(self) -> Iterable[str]:
        """Yield the pending changes, and the commands that apply, show or discard them."""
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
            yield self.paint(self.text("Pending your approval: {what}", what=what), Tone.WAITS)
            # If there is a conflict, nothing is applied without --rest.
            rest = " --rest" if changes.conflicts else ""
            command = self.paint(f"artoo apply {self.name}{rest}", Tone.HEAD)
            yield "  " + self.text("apply it: {command}", command=command)
            others = [
                self.text("look at it: {command}", command=f"artoo diff {self.name}"),
                self.text("discard it: {command}", command=f"artoo discard {self.name}"),
            ]
        if changes.expires_at is not None:
            date = datetime.fromtimestamp(changes.expires_at).astimezone().strftime("%Y-%m-%d")
            others.append(self.text("kept until {date}", date=date))
        yield f"  {DOT.join(others)}"


def later_lines(afterwards: Afterwards, name: str, language: str, *, on_board: bool) -> Iterable[str]:
    """Yield the events in the history of a task's changes after its end, oldest first. Commands follow if changes
    are still pending.

    `name` is the name of the task in commands. If the changes are pending under a board task, it is the name of
    that one.
    """
    text = in_language(language)
    for one in afterwards.became:
        yield _became(one, text)
    if afterwards.waited is not None:
        yield text("Pending approval when it ended: {what}", what=counted(afterwards.waited.counts, text))
    waits = afterwards.waits
    if waits is not None:
        when, until = (
            text("when it ended") if moment is None else local_time(moment) for moment in (waits.since, waits.until)
        )
        what = waiting_line(waits.counts, waits.conflicts, text)
        yield text("Pending your approval since {when}, until {until}: {what}", when=when, until=until, what=what)
        verbs = ("diff", "apply", "discard") if waits.counts or not waits.conflicts else ("diff", "discard")
        verbs = ("diff", "task show") if on_board else verbs
        yield "  " + text(", ").join(f"artoo {verb} {name}" for verb in verbs)


def _became(one: Became, text: Catalogue) -> str:
    sentence = {
        "applied": "Applied {when}: {what}",
        "discarded": "Discarded {when}",
        "expired": "Deleted {when}: the changes expired without a decision",
        "undone": "Undone {when}: {what}",
    }[one.act]
    when = text("when it ended") if one.at is None else local_time(one.at)
    what = on_one_line(one.paths, Here(), text, one.count - len(one.paths))
    left = f"; {text('{count} not restored, because changed since', count=f'{one.left:,}')}" if one.left else ""
    return text(sentence, when=when, what=what) + left
