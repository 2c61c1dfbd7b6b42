"""What became of a task's changes, for whoever looks at it later: a line for each thing, and what to type."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from artoo.cli.results.relative_paths import Here, on_one_line
from artoo.cli.results.task_names import local_time
from artoo.cli.review.layout import waiting_line
from artoo.runtime.changes.settlement_history import Afterwards, Became, Waiting
from artoo.words.catalogue import Catalogue, in_language
from artoo.words.settling import counted


@dataclass(frozen=True, slots=True)
class SettledSince:
    """`name`: the beginning of the id that is enough for artoo's commands: of the task, or of the board's task
    under which its changes wait (`on_board`)."""

    afterwards: Afterwards
    name: str
    language: str = "en"
    on_board: bool = False
    here: Here = field(default_factory=Here)

    @property
    def words(self) -> Catalogue:
        """The sentences."""
        return in_language(self.language)

    def lines(self) -> Iterable[str]:
        """Oldest first; what waits stands last, with the commands that settle it."""
        for one in self.afterwards.became:
            yield self._became(one)
        waited = self.afterwards.waited
        if waited is not None:
            yield self.words("Waited for a yes when it ended: {what}", what=counted(waited.counts, self.words))
        waits = self.afterwards.waits
        if waits is not None:
            when, until = (
                self.words("when it ended") if moment is None else local_time(moment)
                for moment in (waits.since, waits.until)
            )
            what = waiting_line(waits.counts, waits.conflicts, self.words)
            yield self.words(
                "Waits for your yes since {when}, until {until}: {what}", when=when, until=until, what=what
            )
            yield "  " + self.words(", ").join(f"artoo {verb} {self.name}" for verb in self._verbs(waits))

    def _verbs(self, waits: Waiting) -> tuple[str, ...]:
        if self.on_board:
            return ("diff", "task show")
        return ("diff", "discard") if waits.conflicts and not waits.counts else ("diff", "apply", "discard")

    def _became(self, one: Became) -> str:
        sentence = {
            "applied": self.words("Applied {when}: {what}"),
            "discarded": self.words("Discarded {when}"),
            "expired": self.words("Dropped {when}: it had waited too long"),
            "undone": self.words("Put back {when}: {what}"),
        }[one.act]
        when = self.words("when it ended") if one.at is None else local_time(one.at)
        left = f"; {self.words('{count} left, changed since', count=f'{one.left:,}')}" if one.left else ""
        return (
            sentence.format(
                when=when, what=on_one_line(one.paths, self.here, self.words, one.count - len(one.paths))
            )
            + left
        )
