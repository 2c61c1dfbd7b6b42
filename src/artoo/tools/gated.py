"""Commands and files behind the gate: what they change takes effect when it is harmless or was agreed to.

One `TaskLedger` a task is shared by both, so that what the task made is the task's, whichever tool made it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from artoo.contracts.changes import Change, Trait
from artoo.contracts.confirmation import AskedAct, ConfirmationRequest
from artoo.contracts.errors import SandboxError, ToolError
from artoo.contracts.execution import CallEffects, CallStatus
from artoo.ports.sandbox import ActNote, Limits, Roots, Sandbox, SandboxRequest, SandboxRun, TaskLedger
from artoo.tools.commands import Command, meant_changes, outcome_of
from artoo.tools.gate import Gate, Settlement, digest_of_act
from artoo.tools.gate_question import Act
from artoo.tools.gate_words import word
from artoo.tools.journalled import Notes, note_of, outcome_before
from artoo.tools.network import Hearing, Network, network_refusal
from artoo.tools.paths import shown
from artoo.tools.tool import Outcome
from artoo.tools.under_way import digest_of_call, goes_out
from artoo.tools.unified import plain

_SETTLED = ("ok", "error")
"""How a command must have ended for its changes to count: one that was stopped left them half done."""


@dataclass(frozen=True, slots=True)
class GatedCommands:
    """Runs commands against a view and lets the gate settle what they changed. Implements `CommandRunner`.

    `notes` are the journal's, of a resumed task: a call that took effect before the crash is answered from them.
    """

    sandbox: Sandbox
    roots: Roots
    task_id: str
    gate: Gate
    ledger: TaskLedger
    limits: Limits = field(default_factory=Limits)
    notes: Notes = field(default_factory=dict[str, ActNote])
    network: Network = field(default_factory=Network)

    async def run(self, command: Command) -> Outcome:
        """Raises SandboxError when the command cannot be contained or its changes cannot be applied."""
        hearing = self.network.hearing()
        return hearing.explained(await self._run(command, hearing), command.network)

    async def _run(self, command: Command, hearing: Hearing) -> Outcome:
        request = SandboxRequest(
            argv=command.argv,
            cwd=self.roots.project,
            roots=self.roots,
            task_id=self.task_id,
            env=command.env,
            stdin=command.stdin,
            limits=replace(self.limits, wall_seconds=command.wall_seconds),
            ledger=self.ledger,
            hosts=command.network.listed,
            heard=hearing,
            keep_env=frozenset(command.network.credentials),
        )
        program = _program(request)
        call = digest_of_call("run", program, request.argv[-1])
        before = outcome_before(self.notes, call)
        if before is not None:
            return before
        if request.hosts:
            refused = await network_refusal(self.gate, program, request.argv[-1], command.network)
            if refused is not None:
                return refused
        await goes_out(CallEffects.OUTSIDE if request.hosts else CallEffects.STAGED)
        run = await self.sandbox.run(request)
        if run.needs_confirmation:
            return await self._for_real(request, run)
        async with run.staged:
            outcome = outcome_of(run, request.limits)
            if run.status not in _SETTLED:
                return outcome
            note = _note(outcome, run.staged.changes, call)
            act = Act(program, request.argv[-1], failed=run.status == "error", note=note)
            return _settled(outcome, await self.gate.settle(run.staged, act))

    async def _for_real(self, request: SandboxRequest, tried: SandboxRun) -> Outcome:
        """Where nothing can be staged the command itself is asked about; agreed to, it runs with all rights."""
        async with tried.staged:
            refusal = await self.gate.refusal(_unconfined(request, tried, self.gate.origins.language))
            if refusal is not None:
                text = request.argv[-1]
                return replace(
                    outcome_of(tried, request.limits),
                    status=CallStatus.REFUSED,
                    reason=refusal.reason,
                    dropped=(f"{_program(request)}: {plain(text)}",),
                    withheld_by=refusal.by,
                )
        await goes_out(CallEffects.OUTSIDE)
        run = await self.sandbox.run(replace(request, unconfined=True))
        async with run.staged:
            return outcome_of(run, request.limits)


def _program(request: SandboxRequest) -> str:
    return "shell" if request.argv[0] == "bash" else Path(request.argv[0]).name


def _note(outcome: Outcome, changes: tuple[Change, ...], call: str) -> ActNote | None:
    """For the journal: the outcome as it is if all changes take effect."""
    return note_of(replace(outcome, changes=meant_changes(changes)), call) if changes else None


def _unconfined(request: SandboxRequest, tried: SandboxRun, language: str) -> ConfirmationRequest:
    text = request.argv[-1]
    return ConfirmationRequest(
        digest=digest_of_act("unconfined", str(request.cwd), *request.argv),
        title=word("run it for real, without a sandbox", language),
        details=tuple(_unconfined_details(text, request, tried, language)),
        acts=(AskedAct(verb="unconfined", target=text),),
        language=language,
    )


def _unconfined_details(text: str, request: SandboxRequest, tried: SandboxRun, language: str) -> Iterator[str]:
    yield f"[{plain(str(request.cwd))}]"
    for number, line in enumerate(text.splitlines() or [""]):
        yield f"$ {plain(line)}" if number == 0 else f"  {plain(line)}"
    yield word("its changes cannot be listed beforehand, nor undone", language)
    yield from (plain(note) for note in tried.notes)


def _settled(outcome: Outcome, settlement: Settlement) -> Outcome:
    """The outcome with what took effect; what was dropped makes it a failure, whatever the exit code was."""
    if settlement.reason is None:
        return replace(outcome, changes=settlement.changes)
    return replace(
        outcome,
        dropped=settlement.dropped,
        withheld_by=settlement.withheld_by,
        reason="; ".join(filter(None, (settlement.reason, outcome.reason))),
        status=CallStatus.ERROR if outcome.status is CallStatus.OK else outcome.status,
    )


@dataclass(frozen=True, slots=True)
class GatedWriter:
    """Writes files through the transaction and the gate. Implements `FileWriter`. `notes` as in GatedCommands."""

    sandbox: Sandbox
    roots: Roots
    task_id: str
    gate: Gate
    ledger: TaskLedger
    notes: Notes = field(default_factory=dict[str, ActNote])

    async def write(self, path: Path, content: bytes) -> Outcome:
        """Raises ToolError when nothing can be written there, SandboxError when it cannot be applied."""
        request = SandboxRequest(
            argv=(), cwd=self.roots.project, roots=self.roots, task_id=self.task_id, ledger=self.ledger
        )
        name = shown(path, self.roots)
        call = digest_of_call("write", str(path), hashlib.sha256(content).hexdigest())
        before = outcome_before(self.notes, call)
        if before is not None:
            return before
        await goes_out(CallEffects.STAGED)
        try:
            staged = await self.sandbox.stage_write(request, path, content)
        except SandboxError as error:
            raise ToolError(f"{name} was not written: {error}") from error
        async with staged:
            changes = staged.changes
            if _same_content(changes):
                already = f"{name} is already there with exactly this content"
                return Outcome(output=already, ran="nothing was written")
            done = Outcome(output=f"{_verb(changes)} {name} ({_measure(content)})")
            act = Act("write_file", name, note=_note(done, changes, call))
            settlement = await self.gate.settle(staged, act)
            return _settled(done if settlement.reason is None else Outcome(), settlement)


def _same_content(changes: tuple[Change, ...]) -> bool:
    return all(change.has(Trait.TIMES_ONLY) for change in changes)


def _verb(changes: tuple[Change, ...]) -> str:
    return "created" if changes[-1].before is None else "replaced"


def _measure(content: bytes) -> str:
    lines = content.count(b"\n") + (not content.endswith(b"\n") and bool(content))
    return f"{len(content)} bytes, lines: {lines}"
