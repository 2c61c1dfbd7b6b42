"""The slash commands of an editor's session, that is, status, diff, apply, discard, undo and resume."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from acp.helpers import ToolCallContentVariant, text_block, tool_content, update_agent_message_text
from acp.helpers import update_available_commands as commands_update
from acp.schema import AvailableCommand, AvailableCommandInput, AvailableCommandsUpdate, UnstructuredCommandInput

from artoo.contracts.confirmation import PERSON, ConfirmationRequest, Consent
from artoo.contracts.errors import ConfigurationError
from artoo.contracts.recording import AskedBy
from artoo.contracts.settling import Settled
from artoo.protocols.acp.asking import put
from artoo.protocols.acp.content import shown
from artoo.protocols.acp.telling import Teller
from artoo.protocols.handed import UNANSWERED_SECONDS, OpenQuestion
from artoo.protocols.intake import Intake
from artoo.protocols.looking import Looking
from artoo.protocols.reports import settled_report
from artoo.runtime.changes.pending_changes import Pending
from artoo.runtime.changes.undo import can_be_undone

RESUME = "resume"
_TASK = "the id of the task, or its beginning"
_LATEST = f"{_TASK}; default: the latest pending task of this session"
COMMANDS: dict[str, tuple[str, str]] = {
    "status": ("list running tasks, pending changes and the latest tasks", ""),
    "diff": ("show the pending changes of a task", _LATEST),
    "apply": ("show the pending changes of a task, then apply them", _LATEST),
    "discard": ("discard the pending changes of a task", _TASK),
    "undo": ("undo the changes that a task applied", f"{_TASK}; without one, what can be undone"),
    RESUME: ("continue a task that stopped", f"{_TASK}; the latest that can go on"),
}
"""The description of each command, and of its argument. The commands are those of `artoo` alone, as far as an
editor can show their results."""
_MOST_LINES = 20


def offered() -> AvailableCommandsUpdate:
    """Return the commands in the form in which an editor lists them."""
    return commands_update(
        AvailableCommand(name=name, description=meaning, input=_input(hint) if hint else None)
        for name, (meaning, hint) in COMMANDS.items()
    )


def command_in(request: str) -> tuple[str, str] | None:
    """Split a prompt into a command and its argument. Return None if it is a request, for example `/etc/hosts is
    …`."""
    first, _, rest = request.partition(" ")
    name = first.removeprefix("/")
    return (name, rest.strip()) if first == f"/{name}" and name in COMMANDS else None


@dataclass(frozen=True, slots=True)
class Commands:
    """Runs commands in a session. `asked_by` is the editor, for records.

    Raises ArtooError.
    """

    intake: Intake
    looking: Looking
    asked_by: AskedBy
    tasks: frozenset[str]

    async def run(self, name: str, given: str, teller: Teller) -> None:
        """Run one command to its end. Its text is sent as a message."""
        match name:
            case "status":
                text = await self._status()
            case "diff":
                text = await self._diff(await self._pending(given), teller)
            case "apply":
                text = await self._apply(await self._pending(given), teller)
            case "discard":
                text = await self._discard(given)
            case _:
                text = await asyncio.to_thread(self._undo, given)
        await teller.say(update_agent_message_text(self.looking.clean.text(text)))

    async def _pending(self, given: str) -> Pending:
        """Find a task with pending changes. Without a name, find the latest one of this session. Raises
        ConfigurationError."""
        if not given:
            waiting = await asyncio.to_thread(self.looking.waiting)
            own = [one.task_id for one in waiting if one.task_id in self.tasks]
            if not own:
                others = f"; {len(waiting)} from elsewhere: /status" if waiting else ""
                raise ConfigurationError(f"nothing is pending in this session{others}")
            given = own[0]
        return await asyncio.to_thread(self.looking.pending, given)

    async def _status(self) -> str:
        at_work = self.intake.running()
        running = list(map(self.looking.handed, at_work))
        waiting = await asyncio.to_thread(self.looking.waiting)
        latest = await asyncio.to_thread(self.looking.latest, 5, at_work)
        parts = (
            ("Running", [f"`{one.task_id}` {_short(one.request)}" for one in running]),
            ("Pending", [f"`{one.task_id}` {_short(one.request)} ({one.reason})" for one in waiting]),
            ("Latest", [f"`{one.task_id}` {one.status}: {_short(one.request)}" for one in latest]),
        )
        return "\n\n".join(f"{name}:\n{_listed(lines)}" for name, lines in parts if lines) or "Nothing yet."

    async def _diff(self, pending: Pending, teller: Teller) -> str:
        review = await pending.diff()
        content: list[ToolCallContentVariant] = list(shown(review.changes, self.looking.clean))
        conflicts = [f"conflict {one.path}: {one.reason}" for one in review.conflicts]
        if conflicts:
            content.append(tool_content(text_block(self.looking.clean.text(_listed(conflicts)))))
        await teller.show(f"{pending.task_id}/diff", f"what task {pending.task_id} would change", content)
        return f"`/apply {pending.task_id}` applies it, `/discard {pending.task_id}` drops it."

    async def _apply(self, pending: Pending, teller: Teller) -> str:
        # The digest is read first. If the changes differ a moment later, the approval is refused.
        digest, review = await pending.digest(), await pending.diff()
        title = f"Apply what task {pending.task_id} did?"
        question = OpenQuestion(
            ConfirmationRequest(digest=digest, title=title, review=review),
            asyncio.get_running_loop().create_future(),
        )
        try:
            async with asyncio.timeout(UNANSWERED_SECONDS):
                await put(question, pending.task_id, teller)
        except TimeoutError:
            question.unanswered("there was no answer")
        said = None if question.said.exception() is not None else question.said.result()
        if said is Consent.DISCARD:
            return await self._settled(pending, await pending.discard(by=self._by), teller)
        if not isinstance(said, Consent) or not said.is_yes:
            await teller.settled(pending.task_id, Settled(state="pending"))
            return "Nothing was applied."
        return await self._settled(pending, await pending.apply(digest=digest, by=self._by), teller)

    async def _discard(self, given: str) -> str:
        if not given:
            waiting = await asyncio.to_thread(self.looking.waiting)
            listed = _listed([f"`/discard {one.task_id}` {_short(one.request)}" for one in waiting])
            return listed or "Nothing is pending."
        pending = await self._pending(given)
        settled = await pending.discard(by=self._by)
        return f"Task {pending.task_id}: {settled.state}."

    async def _settled(self, pending: Pending, settled: Settled, teller: Teller) -> str:
        await teller.settled(pending.task_id, settled)
        report = settled_report(pending.task_id, settled, self.looking.clean)
        lines = [*report.applied, *(f"conflict {one}" for one in report.conflicts)]
        why = f" ({report.reason})" if report.reason else ""
        return f"Task {pending.task_id}: {report.state}{why}.\n{_listed(lines)}".rstrip()

    def _undo(self, given: str) -> str:
        if not given:
            listed = _listed([f"`/undo {one.task_id}`" for one in can_be_undone(self.intake.config)])
            return listed or "Nothing can be undone."
        report = self.looking.undo(given, self._by)
        left = [f"left alone: {one.path}: {one.reason}" for one in report.refused]
        return f"Task {report.task_id}: {len(report.restored)} paths restored.\n{_listed(left)}".rstrip()

    @property
    def _by(self) -> str:
        return f"{PERSON} through {self.asked_by.label}"


def _input(hint: str) -> AvailableCommandInput:
    return AvailableCommandInput(UnstructuredCommandInput(hint=hint))


def _short(request: str) -> str:
    line = " ".join(request.split())
    return line if len(line) <= 80 else f"{line[:79]}…"


def _listed(lines: Sequence[str]) -> str:
    more = [f"- and {len(lines) - _MOST_LINES} more"] if len(lines) > _MOST_LINES else []
    return "\n".join([*(f"- {line}" for line in lines[:_MOST_LINES]), *more])
