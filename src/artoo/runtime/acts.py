"""What a resumed task must know of its earlier processes, read from its log and its journals (SPEC section 10).

task log ──► calls, those under way, answers ─┐
                                              ├─► Past ─► open_hands: gate, ledger, toolbox
journals ──► notes, what is the task's own ───┘
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from artoo.contracts.confirmation import ConfirmationAnswer, ConfirmationRequest
from artoo.contracts.envelope import Envelope
from artoo.contracts.execution import CallEffects, ToolCall, ToolCalled, ToolStarted
from artoo.contracts.network import NetworkUsed
from artoo.runtime.config import Config
from artoo.runtime.settling import keep_of
from artoo.tasklog.redact import MARK
from artoo.tools.past import Consented, Past
from artoo.world.remembered import remembered


def past_of(config: Config, task_id: str, envelopes: Iterable[Envelope], now: datetime) -> Past:
    """The past of a task that nobody runs now. `envelopes`: its whole log, in order. Blocking.

    `settle_earlier` must have run, so that no act is half done. Raises ConfigurationError when the person has put
    back what the task changed, SandboxError when an act could not be settled.
    """
    heard = _Heard()
    for envelope in envelopes:
        heard.add(envelope)
    kept = remembered(config.home, task_id)
    kept_since = now - timedelta(days=keep_of(config).days)
    return Past(
        started={act: one for act, (one, _) in heard.started.items()},
        forgotten=frozenset(act for act, (_, at) in heard.started.items() if at < kept_since),
        ended=frozenset(heard.ended),
        consented=tuple(heard.consented),
        calls=tuple(heard.calls),
        notes={act: note for act, note in kept.notes.items() if act not in heard.ended},
        ledger=kept.ledger,
        redacted=MARK,
        used=tuple(heard.used),
    )


@dataclass(slots=True)
class _Heard:
    """What the log says, message by message."""

    started: dict[str, tuple[ToolStarted, datetime]] = field(
        default_factory=dict[str, tuple[ToolStarted, datetime]]
    )
    ended: set[str] = field(default_factory=set[str])
    calls: list[ToolCall] = field(default_factory=list[ToolCall])
    consented: list[Consented] = field(default_factory=list[Consented])
    used: list[NetworkUsed] = field(default_factory=list[NetworkUsed])
    _asked: dict[str, ConfirmationRequest] = field(default_factory=dict[str, ConfirmationRequest])

    def add(self, envelope: Envelope) -> None:
        match envelope.payload:
            case ToolStarted() as started:
                self._start(started, envelope.at)
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

    def _start(self, started: ToolStarted, at: datetime) -> None:
        """A call that was started twice has gone as far as the further of them."""
        known = self.started.get(started.act)
        if known is None or known[0].effects is not CallEffects.OUTSIDE:
            self.started[started.act] = (started, at)
