"""The slash commands of the conversation, and what it counts for /audit."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from artoo.contracts.envelope import Envelope
from artoo.contracts.events import MessagesDropped, RouteViolation
from artoo.contracts.execution import CorrectionSignal
from artoo.contracts.solution import Decided, FinalResult
from artoo.words.catalogue import Catalogue


class SlashCommand(Enum):
    """A command, with its line in /help and the arguments that it has when none are given."""

    HELP = ("show this list", ())
    LOG = ("what tasks did (artoo log)", ("list",))
    MEMORY = ("what was learnt (artoo memory)", ())
    AUDIT = ("what this session did", ())
    DIFF = ("what a task would change, that waits for you (artoo diff)", ())
    APPLY = ("apply it (artoo apply)", ())
    DISCARD = ("drop it (artoo discard)", ())
    UNDO = ("put back what a task changed (artoo undo)", ())
    RESUME = ("go on with a task that stopped (artoo resume)", ())
    STATUS = ("what waits for you (artoo status)", ())
    MODEL = ("the local model (artoo model)", ("list",))
    CLEAR = ("forget what was said in this conversation", ())
    QUIT = ("leave", ())

    def __init__(self, summary: str, defaults: tuple[str, ...]) -> None:
        self.summary = summary
        self.defaults = defaults


SLASH_COMMANDS: dict[str, SlashCommand] = {command.name.lower(): command for command in SlashCommand}


SUMS = (
    ("{count} task", "{count} tasks"),
    ("{count} round", "{count} rounds"),
    ("{count} correction", "{count} corrections"),
    ("{count} refused message", "{count} refused messages"),
    ("{count} dropped message", "{count} dropped messages"),
)
"""What a session counts, for one and for several."""


@dataclass(slots=True)
class Tally:
    """What the messages of this session add up to."""

    tasks: int = 0
    rounds: int = 0
    corrections: int = 0
    violations: int = 0
    dropped: int = 0

    def count(self, envelope: Envelope) -> None:
        """Takes one message into account."""
        payload = envelope.payload
        self.tasks += isinstance(payload, FinalResult)
        self.rounds += isinstance(payload, Decided)
        self.corrections += isinstance(payload, CorrectionSignal)
        self.violations += isinstance(payload, RouteViolation)
        self.dropped += payload.count if isinstance(payload, MessagesDropped) else 0

    def line(self, text: Catalogue) -> str:
        """The sums in a sentence."""
        if not self.tasks:
            return text("Nothing has run in this session yet.")
        sums = (self.tasks, self.rounds, self.corrections, self.violations, self.dropped)
        return ", ".join(text.count(*part, number) for part, number in zip(SUMS, sums, strict=True))
