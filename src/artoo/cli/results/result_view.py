"""The text of a result on the terminal, with the answer first, then assurance, unmet criteria and cost.

Code, not a model, determines the facts that follow the answer.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from artoo.cli.conversation.conversation_hints import typed
from artoo.cli.display.colors import Paint, Tone
from artoo.cli.display.line_wrap import fold_text
from artoo.cli.display.sanitize import one_line, printable
from artoo.cli.display.symbols import ARROW, BULLET, DOT, FAILED, cost_line
from artoo.cli.display.task_state import TaskView
from artoo.cli.results.relative_paths import Here
from artoo.cli.results.settlement_view import SettledLines
from artoo.contracts.confirmation import AskedAct
from artoo.contracts.criteria import Assurance
from artoo.contracts.errors import ConfigurationError
from artoo.contracts.solution import Directive, FinalResult
from artoo.contracts.text import listed
from artoo.words.catalogue import Catalogue
from artoo.words.names import ASSURANCE, role_name
from artoo.words.result import ResultWords, result_words
from artoo.words.shown import uncoloured

LISTED = 20
"""Maximum number of entries of a list that are shown. Further entries are only counted. Unmet criteria are an
exception, because all of them are shown."""


@dataclass(frozen=True, slots=True)
class ResultText:
    """The text of a result. `name` is the id of the task, or a beginning of it that is unique.

    `terminal`: true to make the answer safe for a terminal. The other lines are always safe. `columns`: the width
    to which lines are wrapped. 0 means that they are not wrapped. `talk`: the option with which the user can
    continue the conversation.
    """

    result: FinalResult
    view: TaskView
    name: str
    here: Here = field(default_factory=Here)
    paint: Paint = field(default_factory=Paint)
    terminal: bool = True
    columns: int = 0
    talk: str = "-c"

    @property
    def text(self) -> Catalogue:
        """Return the message catalogue for the language of the display."""
        return self.view.text

    def lines(self) -> str:
        """Return the whole text. It has the reason why the task stopped, the answer, the unmet criteria, and the
        facts."""
        stopped, answer = one_line(self.words.why_stopped(self.result)), uncoloured(self.result.output).strip()
        if not answer and not stopped:
            answer = self.text("(no output)")
        if self.columns and self.view.is_shown(answer):
            answer = ""
        if not self.columns:
            safe = printable(answer) if self.terminal else answer
            return "\n\n".join(block for block in (stopped, safe, *self._gaps(), self._facts()) if block)
        own = [fold_text(block, self.columns) for block in (stopped, *self._gaps(), self._facts())]
        blocks = [own[0], self.view.laid_out(answer, self.columns, colours=self.paint.colours), *own[1:]]
        return "\n\n".join(block for block in blocks if block)

    @property
    def words(self) -> ResultWords:
        """Return the message catalogue with the sentences about results."""
        return result_words(self.text.language)

    def _gaps(self) -> Iterable[str]:
        """Yield the unmet criteria, the withheld operations, the next moves, and what an abandoned task has
        reached."""
        yield self._unmet()
        if self.result.directive is Directive.ABANDON:
            yield self._listed(self.text("Reached"), self.result.done, BULLET)
            yield self._listed(self.text("Tried"), self.result.tried, BULLET)
        yield self._listed(self.text("Withheld (Law 1)"), self.result.withheld, BULLET)
        yield self._listed(self.text("Next"), self.words.could(self.result, typed(self.talk)), ARROW)

    def _unmet(self) -> str:
        """List every failed criterion with its reason and the role that is accountable for it. The list is never
        shortened."""
        failed = self.words.failed(self.result)
        if not failed:
            return ""
        lines = [self.text("Not met")]
        for entry in failed:
            criterion = self.words.criterion(entry.criterion)
            reason = self.words.why_unmet(entry, self.result.output)
            told = f"{one_line(criterion)}: {one_line(reason)}" if reason else one_line(criterion)
            role = self.text("accountable: {role}", role=role_name(entry.accountable.value, self.text))
            lines.append(f"  {FAILED} {told} ({role})")
        return "\n".join(lines)

    def _listed(self, head: str, entries: Sequence[str], mark: str) -> str:
        if not entries:
            return ""
        lines = [head, *(f"  {mark} {one_line(entry)}" for entry in entries[:LISTED])]
        if len(entries) > LISTED:
            lines.append("  " + self.text("and {count} more", count=len(entries) - LISTED))
        return "\n".join(lines)

    def _facts(self) -> str:
        """List the facts that code has checked, one per line. They do not depend on the answer."""
        settled = SettledLines(self.result.changes, self.text, self.name, self.here, self.paint)
        known = (one_line(self.words.fact(fact)) for fact in self.result.facts)
        lines = [self._assurance(), *known, *settled.lines()]
        lines += [self.text("To allow it: {line}", line=line) for line in allowing(self.view.state.not_allowed)]
        lines += self._earlier()
        if self.result.stopped_by is not None and self.result.stopped_by.is_infrastructure:
            lines.append(self.text("To resume it: artoo resume {task}", task=self.name))
        cost = cost_line(self.result.cost, self.text, rounds=max(1, len(self.view.rounds)))
        lines.append(f"{self.text('task {task}', task=self.name)}{DOT}{cost}")
        return "\n".join(line for line in lines if line)

    def _earlier(self) -> Iterable[str]:
        """Yield the pending changes of earlier requests of the conversation, with the command that applies them."""
        words = self.text
        for turn in self.view.state.history:
            if not turn.waits:
                continue
            # this task has taken over the changes of that request
            if turn.here and self.result.changes.state != "none":
                continue
            command = words("apply it: {command}", command=self.paint(f"artoo apply {turn.task_id}", Tone.HEAD))
            waits = words("Pending your approval: {what}", what=one_line(listed(turn.waits)))
            yield f"{waits}{DOT}{command}"

    def _assurance(self) -> str:
        """Return a line about how far the answer is verified. Return none if the facts already say that it is not
        verified."""
        result = self.result
        unsaid = not result.facts or result.assurance is not Assurance.UNVERIFIED
        if result.directive is Directive.ABANDON or not unsaid:
            return ""
        effective = result.changes.state in ("none", "applied")
        tone = Tone.MADE if effective and result.assurance is not Assurance.UNVERIFIED else Tone.WAITS
        line = self.paint(self.text(ASSURANCE[result.assurance]), tone)
        return f"{line} {self.text('Some criteria are not met.')}" if result.unmet else line


def allowing(acts: Iterable[AskedAct]) -> list[str]:
    """Return the options of the command line that would have allowed these operations."""
    lines = (f"--allow {shlex.quote(line)}" for line in map(permission_for, acts) if line is not None)
    return list(dict.fromkeys(lines))[:LISTED]


def permission_for(act: AskedAct) -> str | None:
    """Return the permission line for exactly this operation. Return None if no line can permit it."""
    from artoo.runtime.app.run_options import check_policy_line

    line = f"{act.verb} {act.target.partition(' ')[0] if act.verb == 'tool' else act.target}"
    try:
        check_policy_line(line)
    except ConfigurationError:
        return None
    return line
