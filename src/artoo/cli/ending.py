"""The result of a task for a person: the answer first and alone, then in few lines what code knows."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from artoo.cli.marks import Marks, cost_line
from artoo.cli.paint import Paint, Tone
from artoo.cli.places import Here
from artoo.cli.printable import one_line, printable
from artoo.cli.settled_lines import SettledLines
from artoo.cli.text import Text, role_name, stop_reason
from artoo.cli.view import TaskView
from artoo.contracts.confirmation import AskedAct
from artoo.contracts.criteria import Assurance
from artoo.contracts.errors import ConfigurationError
from artoo.contracts.solution import Directive, FinalResult, StoppedBy
from artoo.runtime.outcome import answer_of

LISTED = 20
"""Entries of a list that are shown; the rest are counted. Unmet criteria are always all shown."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How a result is told: `name` is the task's id, or a beginning of it that is enough for artoo's commands.

    `terminal`: the answer is made safe for one; all else is safe anyway.
    """

    result: FinalResult
    view: TaskView
    marks: Marks
    name: str
    here: Here = field(default_factory=Here)
    paint: Paint = field(default_factory=Paint)
    terminal: bool = True

    @property
    def text(self) -> Text:
        """The sentences of the display."""
        return self.view.text

    def lines(self) -> str:
        """All of it. What the summary says already is not said again."""
        answer = answer_of(self.result) or self.text.no_output
        safe = printable(answer) if self.terminal else answer
        blocks = [self._stopped(), safe, *self._gaps(), self._facts()]
        return "\n\n".join(block for block in blocks if block)

    def _stopped(self) -> str:
        """Why it ended early, when the summary says nothing."""
        if self.result.directive is not Directive.ABANDON or self.result.summary:
            return ""
        reason = (self.result.stopped_by or StoppedBy.INTERNAL).value
        return self.text.abandoned.format(reason=stop_reason(reason, self.text))

    def _gaps(self) -> Iterable[str]:
        """What is missing, and of an abandoned task what was reached and tried."""
        yield self._unmet()
        if self.result.directive is Directive.ABANDON:
            yield self._listed(self.text.done_head, self.result.done, self.marks.bullet)
            yield self._listed(self.text.tried_head, self.result.tried, self.marks.bullet)
        yield self._listed(self.text.withheld_head, self.result.withheld, self.marks.bullet)
        yield self._listed(self.text.next_head, self.result.next_moves, self.marks.arrow)

    def _unmet(self) -> str:
        """Every unmet criterion with its reason and the role that answers for it: never shortened."""
        summary = self.result.summary
        unmet = [one for one in self.result.unmet if not (one.criterion in summary and one.reason in summary)]
        if not unmet:
            return ""
        lines = [self.text.unmet_head]
        for entry in unmet:
            reason = f": {one_line(entry.reason)}" if entry.reason else ""
            role = self.text.answers_for.format(role=role_name(entry.accountable.value, self.text))
            lines.append(f"  {self.marks.failed} {one_line(entry.criterion)}{reason} ({role})")
        return "\n".join(lines)

    def _listed(self, head: str, entries: Sequence[str], mark: str) -> str:
        unsaid = [entry for entry in entries if entry not in self.result.summary]
        if not unsaid:
            return ""
        lines = [head, *(f"  {mark} {one_line(entry)}" for entry in unsaid[:LISTED])]
        if len(unsaid) > LISTED:
            lines.append("  " + self.text.more.format(count=len(unsaid) - LISTED))
        return "\n".join(lines)

    def _facts(self) -> str:
        """What code knows, whatever the words say: a line each."""
        abandoned = self.result.directive is Directive.ABANDON
        settled = SettledLines(
            self.result.changes,
            self.result.task_id,
            self.text,
            self.marks,
            self.name,
            self.here,
            self.paint,
            unfinished=abandoned,
        )
        lines = [self._assurance(), *map(one_line, self.result.facts), *settled.lines()]
        lines += [self.text.allow.format(line=line) for line in allowing(self.view.not_allowed)]
        if self.result.stopped_by is not None and self.result.stopped_by.is_infrastructure:
            lines.append(self.text.go_on.format(task=self.name))
        cost = cost_line(self.result.cost, self.marks, self.text, rounds=max(1, len(self.view.rounds)))
        lines.append(f"{self.text.task.format(task=self.name)}{self.marks.dot}{cost}")
        return "\n".join(line for line in lines if line)

    def _assurance(self) -> str:
        """How far the answer can be relied on, unless the facts below say that nothing confirms it."""
        result = self.result
        unsaid = not result.facts or result.assurance is not Assurance.UNVERIFIED
        if result.directive is Directive.ABANDON or not unsaid:
            return ""
        tone = Tone.WAITS if result.assurance is Assurance.UNVERIFIED else Tone.MADE
        line = self.paint(self.text.assurance[result.assurance.value], tone)
        return f"{line} {self.text.success_with_gaps}" if result.unmet else line


def allowing(acts: Iterable[AskedAct]) -> list[str]:
    """The options that would have allowed these acts, as they are typed. Acts that no policy covers have none."""
    from artoo.runtime.options import check_policy_line

    lines: list[str] = []
    for act in acts:
        line = f"{act.verb} {act.target.partition(' ')[0] if act.verb == 'tool' else act.target}"
        try:
            check_policy_line(line)
        except ConfigurationError:
            continue
        lines.append(f"--allow {shlex.quote(line)}")
    return list(dict.fromkeys(lines))[:LISTED]
