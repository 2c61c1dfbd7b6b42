"""Healthy streams of whole tasks, and ways to forge them.

tape = tapes["plain"].edit(FinalResult, output="something else")
assert asyncio.run(tape.difference()) is not None
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TypeVar, cast

import pytest

from artoo import Artoo, Config, RunOptions
from artoo.auditor.watch import Watch
from artoo.contracts.audit import Finding
from artoo.contracts.base import Contract
from artoo.contracts.confirmation import ConfirmationRequest, Consent
from artoo.contracts.envelope import Envelope
from artoo.contracts.errors import ConfigurationError
from artoo.contracts.roles import Role
from artoo.runtime.replay.replay import replay
from artoo.testing import Reply, ScriptedModel, with_body

P = TypeVar("P", bound=Contract)
Kind = type[Contract]
Json = dict[str, object]


@dataclass(frozen=True, slots=True)
class Tape:
    """One stream. Every edit gives a new one; `number` counts messages of a kind, −1 is the last."""

    messages: tuple[Envelope, ...]

    def where(self, kind: Kind, number: int = 0) -> int:
        """The place of a message."""
        return [place for place, each in enumerate(self.messages) if isinstance(each.payload, kind)][number]

    def get(self, kind: type[P], number: int = 0) -> P:
        """A payload."""
        return cast(P, self.messages[self.where(kind, number)].payload)

    def envelope(self, kind: Kind, number: int = 0) -> Envelope:
        """A message."""
        return self.messages[self.where(kind, number)]

    def edit(self, kind: Kind, number: int = 0, /, **changes: object) -> Tape:
        """With other fields in a payload."""
        place = self.where(kind, number)
        payload = self.messages[place].payload.model_copy(update=changes)
        return self._with(place, self.messages[place]._replace(payload=payload))

    def head(self, kind: Kind, number: int = 0, /, **changes: object) -> Tape:
        """With other fields in an envelope."""
        place = self.where(kind, number)
        return self._with(place, self.messages[place]._replace(**changes))  # pyright: ignore[reportArgumentType]

    def drop(self, kind: Kind, number: int = 0) -> Tape:
        """Without a message."""
        place = self.where(kind, number)
        return Tape((*self.messages[:place], *self.messages[place + 1 :]))

    def after(
        self,
        kind: Kind,
        number: int,
        sender: Role,
        payload: Contract,
        cause: Envelope | None,
        subtask: str | None = None,
    ) -> Tape:
        """With one message more, right after another one."""
        place = self.where(kind, number)
        made = Envelope(
            id=f"forged-{place}",
            sender=sender,
            task_id=self.messages[0].task_id,
            at=self.messages[place].at,
            payload=payload,
            subtask_id=subtask,
            cause_id=cause.id if cause is not None else None,
        )
        return Tape((*self.messages[: place + 1], made, *self.messages[place + 1 :]))

    def twice(self, kind: Kind, number: int = 0) -> Tape:
        """With a copy of a message, under a new id, right after it."""
        found = self.envelope(kind, number)
        return self.after(kind, number, found.sender, found.payload, None, found.subtask_id).recaused(
            found.cause_id
        )

    def recaused(self, cause: str | None) -> Tape:
        """With this cause in the message that was forged."""
        made = tuple(m._replace(cause_id=cause) if m.id.startswith("forged-") else m for m in self.messages)
        return Tape(made)

    def swap(self, kind: Kind, other: Kind) -> Tape:
        """With two messages in each other's place."""
        one, two = self.where(kind), self.where(other)
        messages = list(self.messages)
        messages[one], messages[two] = messages[two], messages[one]
        return Tape(tuple(messages))

    def later(self, kind: Kind, number: int, seconds: float) -> Tape:
        """With another time on a message."""
        found = self.envelope(kind, number)
        return self.head(kind, number, at=found.at + timedelta(seconds=seconds))

    def findings(self) -> list[Finding]:
        """What the Watch says of it."""
        watch = Watch()
        return [finding for message in self.messages for finding in watch.observe(message)]

    def rules(self) -> set[str]:
        """The names of the invariants that are broken."""
        return {finding.rule for finding in self.findings()}

    async def difference(self, patience: float = 1.0, grace: float = 0.2) -> str | None:
        """Where a replay of it parts from it, or why it cannot be replayed; None when it decides the same."""
        try:
            replayed = await replay(self.messages, patience=patience, grace=grace)
        except ConfigurationError as error:
            return str(error)
        return None if replayed.difference is None else str(replayed.difference)

    def _with(self, place: int, message: Envelope) -> Tape:
        return Tape((*self.messages[:place], message, *self.messages[place + 1 :]))


def shell(command: str) -> Reply:
    """A step that runs a command."""
    return with_body({"tool": "shell", "is_final": True}, command)


def subtask(intent: str, *criteria: Json | str, tool: str | None = "shell", sequence: int = 1) -> Json:
    """One subtask of a plan."""
    return {"sequence": sequence, "intent": intent, "tool": tool, "success_criteria": list(criteria)}


def matches(regex: str) -> Json:
    """A criterion that a check decides."""
    check = {"check": "output_matches", "regex": regex}
    return {"text": f"it matches {regex}", "mode": "verifiable", "check": check}


def judged(*quotes: str) -> Json:
    """A ValidationReport or MergeReport that passes everything."""
    return {"verdicts": [{"number": n, "quote": q, "verdict": "pass"} for n, q in enumerate(quotes, 1)]}


Script = Mapping[str, object]

WORD, BETA = matches("hello"), matches("beta")


def _python(code: str) -> Reply:
    return with_body({"tool": "python", "is_final": True}, code, "python")


SCRIPTS: dict[str, tuple[str, Script]] = {
    "plain": (
        "How many lines has a.txt?",
        {"Plan": {"subtasks": [subtask("count", matches(r"\d"))]}, "ExecutorStep": shell("wc -l < a.txt")},
    ),
    "corrected": (
        "Show the word.",
        {
            "Plan": {"subtasks": [subtask("show the word", WORD)]},
            "ExecutorStep": [shell("echo nothing of it"), _python("print(open('word.txt').read())")],
        },
    ),
    "judged": (
        "Show the words.",
        {
            "Plan": {
                "subtasks": [
                    subtask("show what is in word.txt", "the word is shown"),
                    subtask("show what is in a.txt", "the letters are shown", sequence=2),
                ],
                "task_criteria": ["everything is shown"],
            },
            "ExecutorStep": [shell("cat word.txt"), shell("cat a.txt")],
            "ValidationReport": [judged("hello"), judged("x y")],
            "MergeReport": with_body({"sources": [1, 2], **judged("hello")}, "hello, x, y", "text"),
        },
    ),
    "replanned": (
        "Show the words, and the letters.",
        {
            "Plan": [
                {
                    "subtasks": [
                        subtask("show what is in word.txt", WORD),
                        subtask("show the second of the words", BETA, sequence=2),
                    ],
                    "task_criteria": [WORD],
                },
                {"subtasks": [subtask("find the second of the words", BETA, tool="python")]},
                {"subtasks": [subtask("print the word that is wanted", BETA)]},
            ],
            "ExecutorStep": [
                shell("cat word.txt"),
                shell("echo gamma"),
                _python("print('delta')"),
                shell("printf beta"),
            ],
            "MergeReport": with_body({"sources": [1, 2]}, "hello, beta", "text"),
        },
    ),
    "refused": (
        "Fetch the page",
        {
            "Plan": {"subtasks": [subtask("fetch the page", matches("page"))]},
            "ExecutorStep": shell("# artoo hosts: example.org\ncurl -s https://example.org/"),
        },
    ),
}


async def _no(_request: ConfirmationRequest) -> Consent:
    return Consent.NO


async def record(place: Path, request: str, script: Script) -> Tape:
    """Runs one task for real against the script, and keeps its stream."""
    project = place / "project"
    project.mkdir(parents=True)
    (project / "a.txt").write_text("x\ny\n")
    (project / "word.txt").write_text("hello\n")
    messages: list[Envelope] = []
    retries = 1 if request == SCRIPTS["corrected"][0] else 0
    sections: dict[str, object] = {"workspace": place / "workspace", "control": {"max_retries": retries}}
    config = Config.model_validate(sections).at_home(place / "home")
    with ScriptedModel(script) as model:  # pyright: ignore[reportArgumentType]
        async with Artoo(config, environ={}, model=model, confirm=_no) as artoo:
            artoo.bus.attach(messages.append)
            await artoo.run(request, options=RunOptions(project=project, memory=True))
    task = messages[0].task_id
    return Tape(tuple(message for message in messages if message.task_id == task))


def names(findings: Sequence[Finding]) -> list[str]:
    """The rules of findings, in order."""
    return [finding.rule for finding in findings]


def recorded(factory: pytest.TempPathFactory) -> dict[str, Tape]:
    """Every script's tape, by name."""
    return {
        name: asyncio.run(record(factory.mktemp(name), request, script))
        for name, (request, script) in SCRIPTS.items()
    }
