"""Convert a task's stream to ACP session updates, that is, plan, calls, changes and answer."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field

from acp.helpers import (
    ToolCallContentVariant,
    plan_entry,
    start_tool_call,
    text_block,
    tool_content,
    update_agent_message_text,
    update_agent_thought_text,
    update_plan,
    update_tool_call,
)
from acp.interfaces import Client
from acp.schema import (
    AgentMessageChunk,
    AgentPlanUpdate,
    AgentThoughtChunk,
    AvailableCommandsUpdate,
    PlanEntryStatus,
    ToolCallLocation,
    ToolCallProgress,
    ToolCallStart,
    ToolCallStatus,
    ToolCallUpdate,
    ToolKind,
    UserMessageChunk,
)

from artoo.contracts.changes import ChangeKind
from artoo.contracts.confirmation import ConfirmationRequest
from artoo.contracts.conversation import ChecklistUpdated, TextDelta
from artoo.contracts.envelope import Envelope
from artoo.contracts.events import ModelCalled
from artoo.contracts.execution import (
    CallStatus,
    CorrectionSignal,
    ExecutionResult,
    SubTaskOutcome,
    ToolCall,
    ToolCalled,
    ToolStarted,
)
from artoo.contracts.plan import DispatchManifest, SubTask
from artoo.contracts.settling import ClassifiedChange, Review, Settled, SettledState
from artoo.contracts.solution import FinalResult
from artoo.protocols.acp.content import locations, shown
from artoo.protocols.reports import told
from artoo.redaction import Redactor
from artoo.tasklog.state import Stage, TaskState
from artoo.tools.files.unified_diff import unified
from artoo.tools.settlement.review import DIFF_BYTES, content_of
from artoo.words.result import result_words
from artoo.workspace.files.rooted import real_files

Update = (
    AgentPlanUpdate
    | ToolCallStart
    | ToolCallProgress
    | AgentMessageChunk
    | AgentThoughtChunk
    | UserMessageChunk
    | AvailableCommandsUpdate
)

_KINDS: dict[str, ToolKind] = {
    "read_file": "read",
    "write_file": "edit",
    "edit_file": "edit",
    "find_files": "search",
    "search_text": "search",
    "mdfind": "search",
    "web_search": "fetch",
    "web_fetch": "fetch",
    "shell": "execute",
    "python": "execute",
}
_LONGEST_TITLE = 200
_PLANNED = (DispatchManifest, SubTask, ExecutionResult, CorrectionSignal, SubTaskOutcome, ChecklistUpdated)
"""Messages that may change the plan."""
_MOST_READ = 20
"""Maximum number of new files of a task that are read again to be shown."""
_STANDS: dict[SettledState, ToolCallStatus] = {
    "applied": "completed",
    "partly": "completed",
    "pending": "pending",
    "discarded": "failed",
}


def answer_of(result: FinalResult) -> str:
    """Return the answer as text, followed by the facts about it."""
    facts = map(result_words(result.language).fact, result.facts)
    return "\n\n".join(part for part in (told(result), "\n".join(f"- {fact}" for fact in facts)) if part)


@dataclass(slots=True)
class Teller:
    """Sends the updates of one task to one session. It stops when the editor has disconnected."""

    client: Client
    session_id: str
    clean: Redactor
    _state: TaskState = field(default_factory=TaskState)
    _plan: AgentPlanUpdate | None = None
    _announced: set[str] = field(default_factory=set[str])
    _review: Review | None = None
    _words: str = ""
    _gone: bool = False

    async def say(self, update: Update) -> None:
        """Send one update."""
        if self._gone:
            return
        try:
            await self.client.session_update(self.session_id, update)
        except ConnectionError:
            self._gone = True

    async def hear(self, envelope: Envelope) -> None:
        """Send one message of the task's stream, if it is of interest to a user."""
        task_id, cut_off = envelope.task_id, tuple(self._state.running)
        self._state.apply(envelope)
        plan = plan_of(self._state, self.clean) if isinstance(envelope.payload, _PLANNED) else None
        if plan is not None and plan != self._plan:
            self._plan = plan
            await self.say(plan)
        match envelope.payload:
            case ToolStarted() as started:
                kind, given = _KINDS.get(started.tool, "other"), {"input": self.clean.text(started.input)}
                title = self._title(f"{started.tool}: {started.input}")
                await self._call(f"{task_id}/{started.act}", title, kind, "in_progress", raw_input=given)
            case ToolCalled(call=call, act=act) if act:
                await self._ended(f"{task_id}/{act}", call)
            case ConfirmationRequest(review=Review() as review):
                self._review = review
            case Settled() as settled:
                await self.settled(task_id, settled)
            case TextDelta(text=text):
                self._words += text
                await self._stream(whole=False)
            case ModelCalled() if self._words:
                await self._stream(whole=True)
            case FinalResult() as result:
                # Without this update, an editor would show the call as in progress for ever.
                for act in cut_off:
                    await self.say(update_tool_call(f"{task_id}/{act}", status="failed"))
                answer = self.clean.text(answer_of(result))
                if answer:
                    await self.say(update_agent_message_text(answer))
            case _:
                return

    async def _stream(self, *, whole: bool) -> None:
        """Send the model's text line by line as thoughts. The answer itself is sent when it has been checked."""
        end = len(self._words) if whole else self._words.rfind("\n") + 1
        line, self._words = self._words[:end], self._words[end:]
        if line.strip():
            await self.say(update_agent_thought_text(self.clean.text(line if line.endswith("\n") else f"{line}\n")))

    async def ask(self, task_id: str, request: ConfirmationRequest, question: str) -> ToolCallUpdate:
        """Show the subject of a question as the call that waits for the answer."""
        call_id, text = question_id(task_id, request), tool_content(text_block(self.clean.text(question)))
        content: list[ToolCallContentVariant] = [text]
        kind: ToolKind | None = None
        places: list[ToolCallLocation] | None = None
        if request.review is not None:
            content += shown(request.review.changes, self.clean)
            kind, places = "edit", locations(one.path for one in request.review.changes)
        await self._call(call_id, self._title(request.title), kind, "pending", content, places)
        return ToolCallUpdate(
            tool_call_id=call_id, title=self._title(request.title), kind=kind, status="pending", content=content
        )

    async def asked(self, task_id: str, request: ConfirmationRequest, *, agreed: bool) -> None:
        """End the display of a question if no call and no settlement does it."""
        if request.review is None and not request.act:
            status: ToolCallStatus = "completed" if agreed else "failed"
            await self.say(update_tool_call(question_id(task_id, request), status=status))

    async def _call(
        self,
        call_id: str,
        title: str,
        kind: ToolKind | None,
        status: ToolCallStatus,
        content: list[ToolCallContentVariant] | None = None,
        places: list[ToolCallLocation] | None = None,
        raw_input: dict[str, str] | None = None,
    ) -> None:
        """Send a call that is new to the editor, or an update of a known one."""
        if call_id in self._announced:
            await self.say(update_tool_call(call_id, status=status, content=content, locations=places))
            return
        self._announced.add(call_id)
        begun = start_tool_call(
            call_id,
            title,
            kind=kind or "other",
            status=status,
            content=content,
            locations=places,
            raw_input=raw_input,
        )
        await self.say(begun)

    async def _ended(self, call_id: str, call: ToolCall) -> None:
        ok = call.status is CallStatus.OK
        parts = (call.output,) if ok else (call.reason or "", call.error_output, call.output)
        text = self.clean.text("\n".join(part for part in parts if part))
        content: list[ToolCallContentVariant] = [tool_content(text_block(text))] if text else []
        places = locations(call.changes) or None
        title = self._title(f"{call.tool}: {call.input}")
        status: ToolCallStatus = "completed" if ok else "failed"
        await self._call(call_id, title, _KINDS.get(call.tool, "other"), status, content, places)

    async def show(self, call_id: str, title: str, content: list[ToolCallContentVariant]) -> None:
        """Send a text to read, as a call that is completed."""
        await self._call(call_id, self._title(title), "read", "completed", content)

    async def settled(self, task_id: str, settled: Settled) -> None:
        """Send what has happened to the changes. If a review showed them before, send only their state."""
        status, call_id = _STANDS.get(settled.state), f"{task_id}/changes"
        if status is None:
            return
        # the review has shown these changes already, so only their state is new
        if call_id in self._announced:
            await self.say(update_tool_call(call_id, status=status))
            return
        changes = self._review.changes if self._review is not None else settled.changes
        if settled.state == "applied" and self._review is None:
            changes = await asyncio.to_thread(lambda: tuple(_read_again(changes)))
        title = self._title(", ".join(one.path for one in changes))
        places = locations(one.path for one in changes)
        await self._call(call_id, title, "edit", status, shown(changes, self.clean), places)

    def _title(self, text: str) -> str:
        return self.clean.text(" ".join(text.split()))[:_LONGEST_TITLE]


def question_id(task_id: str, request: ConfirmationRequest) -> str:
    """Return the id of the call that waits for the answer. It is the id of the tool call, of the settlement, or of
    the question."""
    what = "changes" if request.review is not None else request.act or request.digest[:16]
    return f"{task_id}/{what}"


def _read_again(changes: tuple[ClassifiedChange, ...]) -> Iterator[ClassifiedChange]:
    """Add the text of small new files. No user was asked about these changes, so no review has read the files."""
    left = _MOST_READ
    for one in changes:
        if one.kind is ChangeKind.CREATED and left and (one.size_after or DIFF_BYTES + 1) <= DIFF_BYTES:
            left -= 1
            made = content_of(real_files(), one.path)
            yield one if made is None else one.model_copy(update={"diff": unified(b"", made)})
        else:
            yield one


_CHECKLIST: dict[str, PlanEntryStatus] = {"pending": "pending", "in_progress": "in_progress", "done": "completed"}
_STAGES: dict[Stage, PlanEntryStatus] = {
    Stage.WORKING: "in_progress",
    Stage.CHECKING: "in_progress",
    Stage.MATCHED: "completed",
}
"""A stage that has failed counts as not done yet."""


def plan_of(state: TaskState, clean: Redactor) -> AgentPlanUpdate | None:
    """Return the whole plan, which the protocol requires in every update. Return None while there is none."""
    entries = [plan_entry(clean.text(text), status=status) for text, status in _entries(state)]
    return update_plan(entries) if entries else None


def _entries(state: TaskState) -> Iterator[tuple[str, PlanEntryStatus]]:
    """Yield the subtasks that were carried over, then those of the present round. Each is followed by its
    checklist."""
    present = next((each for each in reversed(state.rounds) if each.subtasks), None)
    if present is None:
        return
    for subtask_id in present.carried:
        carried = state.subtask(subtask_id)
        if carried is not None:
            yield carried.intent, "completed"
    for subtask in present.subtasks.values():
        yield subtask.intent, _STAGES.get(subtask.stage, "pending")
        for item in subtask.checklist:
            yield item.text, _CHECKLIST[item.status]
