"""What a resumed task must know of its earlier processes, read from its log (SPEC section 10).

task log ──► calls, those under way, answers, processes that died ─► Past ─► open_hands: gate, toolbox, news
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from artoo.contracts.confirmation import ConfirmationAnswer, ConfirmationRequest
from artoo.contracts.envelope import Envelope
from artoo.contracts.execution import CallEffects, ToolCall, ToolCalled, ToolStarted
from artoo.contracts.network import NetworkUsed
from artoo.contracts.recording import TaskResumed
from artoo.redaction import MARK
from artoo.tools.resume.earlier_runs import Consented, Past


def past_of(envelopes: Iterable[Envelope]) -> Past:
    """Return the past of a task that no process runs now. `envelopes` is its whole log, in order."""
    heard = _Heard()
    for envelope in envelopes:
        heard.add(envelope)
    died: dict[str, tuple[str, ...]] = {}
    for subtask, told in heard.running.values():
        died[subtask] = (*died.get(subtask, ()), told)
    return Past(
        started=heard.started,
        ended=frozenset(heard.ended),
        consented=tuple(heard.consented),
        calls=tuple(heard.calls),
        redacted=MARK,
        used=tuple(heard.used),
        changed=tuple(heard.changed),
        died=died,
    )


@dataclass(slots=True)
class _Heard:
    """What the log says, message by message. `running`: processes by id, with their subtask and `ID (command)`."""

    started: dict[str, ToolStarted] = field(default_factory=dict[str, ToolStarted])
    ended: set[str] = field(default_factory=set[str])
    calls: list[ToolCall] = field(default_factory=list[ToolCall])
    consented: list[Consented] = field(default_factory=list[Consented])
    used: list[NetworkUsed] = field(default_factory=list[NetworkUsed])
    changed: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    running: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    _asked: dict[str, ConfirmationRequest] = field(default_factory=dict[str, ConfirmationRequest])

    def add(self, envelope: Envelope) -> None:
        match envelope.payload:
            case ToolStarted() as started:
                self._start(started)
            case ToolCalled(call=call, act=act, subtask_id=subtask):
                self.calls.append(call)
                self.ended.add(act)
                self.started.pop(act, None)
                self.changed += ((subtask, path) for path in call.changes)
                self._follow(call, subtask)
            case ConfirmationRequest() as request:
                self._asked[envelope.id] = request
            case ConfirmationAnswer() as answer:
                request = self._asked.pop(envelope.cause_id or "", None)
                if request is not None and request.digest == answer.digest:
                    self.consented.append((request, answer))
            case NetworkUsed() as used:
                self.used.append(used)
            case TaskResumed():
                self.running.clear()
            case _:
                return

    def _follow(self, call: ToolCall, subtask: str) -> None:
        """Take note of the processes that run after a call."""
        if call.tool == "process":
            ended = call.target.rpartition(" ")[2]
            if not call.process and not call.never_ran:
                self.running.pop(ended, None)
        elif call.process:
            self.running[call.process] = subtask, f"{call.process} ({call.target})"

    def _start(self, started: ToolStarted) -> None:
        """A call that was started twice has gone as far as the further of them."""
        known = self.started.get(started.act)
        if known is None or known.effects is not CallEffects.OUTSIDE:
            self.started[started.act] = started
