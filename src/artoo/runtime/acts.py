"""What a resumed task must know of its earlier processes, read from its log (SPEC section 10).

task log ──► calls, those under way, answers ─► Past ─► open_hands: gate, toolbox

What was done to the person's files is in the task's view (`world.view`), which the task goes on in. The view knows
too how the calls ended that did it: their records may be missing from the log.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from artoo.contracts.confirmation import ConfirmationAnswer, ConfirmationRequest
from artoo.contracts.envelope import Envelope
from artoo.contracts.execution import CallEffects, ToolCall, ToolCalled, ToolStarted
from artoo.contracts.network import NetworkUsed
from artoo.contracts.recording import Observed, Source
from artoo.ports.sandbox import ActNote
from artoo.redaction import MARK
from artoo.tools.past import Consented, Past


def past_of(envelopes: Iterable[Envelope], notes: Mapping[str, ActNote], stream: Iterable[Envelope] = ()) -> Past:
    """The past of a task that nobody runs now. `envelopes`: its whole log, in order; `notes`: those of its view;
    `stream`: what stands of the log: a join that does not stand is made again.
    """
    heard = _Heard()
    for envelope in envelopes:
        heard.add(envelope)
    return Past(
        started=heard.started,
        ended=frozenset(heard.ended),
        consented=tuple(heard.consented),
        calls=tuple(heard.calls),
        redacted=MARK,
        used=tuple(heard.used),
        notes=notes,
        joined=frozenset(key for envelope in stream for key in _joined(envelope)),
    )


def _joined(envelope: Envelope) -> tuple[str, ...]:
    """By what the dispatcher saw of a join: its `Joined` may have been lost with the process."""
    match envelope.payload:
        case Observed(source=Source.JOIN, question=question, error=None):
            return tuple(question.split())
        case _:
            return ()


@dataclass(slots=True)
class _Heard:
    """What the log says, message by message."""

    started: dict[str, ToolStarted] = field(default_factory=dict[str, ToolStarted])
    ended: set[str] = field(default_factory=set[str])
    calls: list[ToolCall] = field(default_factory=list[ToolCall])
    consented: list[Consented] = field(default_factory=list[Consented])
    used: list[NetworkUsed] = field(default_factory=list[NetworkUsed])
    _asked: dict[str, ConfirmationRequest] = field(default_factory=dict[str, ConfirmationRequest])

    def add(self, envelope: Envelope) -> None:
        match envelope.payload:
            case ToolStarted() as started:
                self._start(started)
            case ToolCalled(call=call, act=act):
                self.calls.append(call)
                self.ended.add(act)
                self.started.pop(act, None)
            case ConfirmationRequest() as request:
                self._asked[envelope.id] = request
            case ConfirmationAnswer() as answer:
                request = self._asked.pop(envelope.cause_id or "", None)
                if request is not None and request.digest == answer.digest:
                    self.consented.append((request, answer))
            case NetworkUsed() as used:
                self.used.append(used)
            case _:
                return

    def _start(self, started: ToolStarted) -> None:
        """A call that was started twice has gone as far as the further of them."""
        known = self.started.get(started.act)
        if known is None or known.effects is not CallEffects.OUTSIDE:
            self.started[started.act] = started
