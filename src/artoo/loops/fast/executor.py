"""R3 (executor), which works on one subtask in turns of a conversation, with the token limits of a turn.

It is the plant of the fast loop. It never judges its own work.

SubTask ──► opening, first calls ──► between turns ──► a turn ──► its calls ──► … ──► ExecutionResult
                                     │ news, messages, directives
CorrectionSignal ──► a message ──────┘
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from artoo.contracts.conversation import Compacted, ModelTurn, Returned, Said, Took, ToolRequest
from artoo.contracts.envelope import Envelope
from artoo.contracts.errors import BudgetExhausted, ContextOverflow, ModelAnswerInvalid, ModelError
from artoo.contracts.execution import CallStatus, CorrectionSignal, ExecutionResult, ToolCall
from artoo.contracts.plan import Glance, SubTask
from artoo.contracts.settling import ApplyMode, ChangeClass
from artoo.contracts.steering import Heard
from artoo.contracts.text import listed, without_middle
from artoo.loops.asking import Asker
from artoo.loops.before_work import BeforeWork
from artoo.loops.fast.calls import CallRecord, Calls
from artoo.loops.fast.compaction import Compaction, Summary, is_due
from artoo.loops.fast.conversation import Talk
from artoo.loops.fast.inbox import Inbox
from artoo.loops.fast.opening import Briefing
from artoo.loops.fast.own_tools import AttemptEnd, OwnTools
from artoo.loops.fast.progress import Progress, Sampling
from artoo.loops.heuristics import Heuristics
from artoo.loops.role import attend, listen
from artoo.ports.bus import Port
from artoo.ports.surroundings import ExecutorsView
from artoo.ports.tools import Toolbox
from artoo.prompts.segments import Segment

_TURN_TOKENS = 8_000
_SMALL_TURN_TOKENS = 700
_SUMMARY_TOKENS = 2_000

_CUT = "Your message was cut off at its token limit. Say it in less, or in parts."
_NOTED = "Noted."


@dataclass(slots=True)
class _Work:
    """The running subtask. `first` is the index of this attempt's first call in the record. `ends` is the reason
    for which the solver ended the attempt, or empty.
    """

    subtask: SubTask
    cause: Envelope
    briefing: Briefing
    glance: Glance | None
    talk: Talk
    record: CallRecord
    calls: Calls
    own: OwnTools
    sampling: Sampling
    progress: Progress = field(default_factory=Progress)
    attempt: int = 1
    first: int = 0
    ends: str = ""

    @property
    def attempt_calls(self) -> list[ToolCall]:
        """Return the calls of this attempt."""
        return self.record.calls[self.first :]


@dataclass(slots=True, eq=False)
class Executor:
    """Works on one subtask: answers the SubTask, and each CorrectionSignal, with an ExecutionResult.

    `view` reads the task's workspace and the messages for the executor. Paths are shown relative to `project`.
    `unasked`: classes of changes that are applied after the task without a question to the user. `asks`: true if a
    user can answer questions.
    """

    port: Port
    asker: Asker
    toolbox: Toolbox
    view: ExecutorsView
    heuristics: Heuristics = field(default_factory=Heuristics)
    project: str = ""
    unasked: frozenset[ChangeClass] = ApplyMode.NEW.unasked
    asks: bool = False
    before: BeforeWork = field(default_factory=BeforeWork)
    _inbox: Inbox = field(default_factory=Inbox, init=False)
    _work: _Work | None = field(default=None, init=False)

    @property
    def calls(self) -> int:
        """Count the tool calls of all attempts."""
        return len(self._work.record.calls) if self._work is not None else 0

    async def run(self) -> None:
        """Handle messages until the port closes. Messages that arrive during an attempt go into the inbox."""

        async def handle(envelope: Envelope) -> None:
            if isinstance(envelope.payload, SubTask | CorrectionSignal):
                group.create_task(attend(self.port, self._answer, envelope))
            else:
                self._inbox.put(envelope)

        async with asyncio.TaskGroup() as group:
            await listen(self.port, handle)

    async def _answer(self, envelope: Envelope) -> None:
        """Start the subtask or its next attempt, and publish its result."""
        match envelope.payload:
            case SubTask() as subtask:
                work = self._work = await self._begin(subtask, envelope)
            case CorrectionSignal() as correction if self._work is not None:
                work = self._work
                work.cause, work.attempt, work.first = envelope, correction.attempt + 1, len(work.record.calls)
                work.sampling, work.ends = Sampling(self.asker.clock), ""
                work.progress.begin()
                last = work.record.call(len(work.record.calls))
                work.talk.say(work.briefing.correction(correction, last), "correction")
            case _:
                return
        try:
            ending = await self._attempt(work)
        except ModelAnswerInvalid as error:
            ending = AttemptEnd("uncertain", f"no usable turn from the model: {error}")
        self.port.publish(self._result(work, ending), cause=envelope)

    async def _begin(self, subtask: SubTask, cause: Envelope) -> _Work:
        key, record, known = subtask.subtask_id, CallRecord(self.project), self.asker.known
        one_program = known.small and self.heuristics.other_language
        own = OwnTools(self.port, self._inbox, record, key, self.asks, one_program)
        briefing = Briefing(self.asker, self.toolbox.specs, self.heuristics, self.unasked)
        opening, glance = await briefing.open(subtask, cause.at, own.specs, self.view)
        images = subtask.images if known.images else ()
        talk = Talk(opening, [Said(text=opening.user, source="request", images=images)])
        calls, sampling = Calls(self.port, self.toolbox, record, key, self.before), Sampling(self.asker.clock)
        return _Work(subtask, cause, briefing, glance, talk, record, calls, own, sampling)

    async def _attempt(self, work: _Work) -> AttemptEnd:
        """Take turns until one ends the attempt."""
        if work.attempt == 1 and work.subtask.first_calls:
            await self._make_first_calls(work)
        while True:
            await self._look(work)
            if work.ends:
                return AttemptEnd("uncertain", work.ends)
            turn = await self._turn(work)
            if turn is None:  # the user has interrupted the task and has not continued it
                continue
            before = len(work.record.calls)
            ending = await self._obey(work, turn)
            made = work.record.calls[before:]
            work.sampling.turned(made)
            why = work.progress.stuck_by(made)
            if why and (ending is None or ending.status == "uncertain"):
                return AttemptEnd("uncertain", why, circled=True)
            if ending is not None and not await self._spoken_to(work):
                return ending

    async def _make_first_calls(self, work: _Work) -> None:
        """Make the read-only calls that the plan names, as if the model had requested them."""
        reading = {spec.name for spec in self.toolbox.specs if spec.only_reads}
        named = [each for each in work.subtask.first_calls if each.tool in reading]
        requests = [
            ToolRequest(id=f"first_{number}", name=each.tool, arguments=each.arguments)
            for number, each in enumerate(named, 1)
        ]
        if requests:
            turn = ModelTurn(calls=tuple(requests))
            work.talk.messages.append(Took(turn=turn))
            await self._obey(work, turn)

    async def _look(self, work: _Work) -> None:
        """Add external events since the last turn to the conversation as messages."""

        async def arrived() -> tuple[Heard, ...]:
            return (*self._inbox.drain(), *work.sampling.due())

        await self._inbox.until_released()
        while news := await self.view.news():
            work.talk.say("\n".join(news))
            work.progress.disturbed()
        while not work.ends and (heard := await self.view.heard(arrived)):
            for each in heard:
                self._hear(work, each)

    async def _spoken_to(self, work: _Work) -> bool:
        """Add messages that the user wrote during the last turn. Returns False if there are none."""

        async def arrived() -> tuple[Heard, ...]:
            return self._inbox.take_messages()

        heard = await self.view.heard_last(arrived)
        for each in heard:
            self._hear(work, each)
        return bool(heard)

    def _hear(self, work: _Work, heard: Heard) -> None:
        if heard.what == "sample":
            self.port.publish(work.sampling.take(work.subtask.subtask_id, work.attempt), cause=work.cause)
            return
        self._inbox.note(heard)
        if heard.what == "end":
            work.ends = heard.text or "the attempt made no progress"
            return
        work.talk.say(heard.text, "user" if heard.what == "message" else "control")
        work.progress.disturbed()

    async def _turn(self, work: _Work) -> ModelTurn | None:
        """Take the model's next turn; return None if the user interrupted it."""
        if is_due(work.talk.tokens, self.asker.known.window):
            await self._compact(work)
        asking = asyncio.ensure_future(self._asked(work))
        with self._inbox.interrupting(asking):
            try:
                return await asking
            except asyncio.CancelledError:
                own = asyncio.current_task()
                if self._inbox.interrupted and not (own is not None and own.cancelling()):
                    return None
                raise

    async def _asked(self, work: _Work) -> ModelTurn:
        """Ask the model. If the conversation does not fit the window, compact it once and ask again."""
        try:
            return await self._ask(work)
        except ContextOverflow:
            await self._compact(work)
            return await self._ask(work)

    async def _ask(self, work: _Work) -> ModelTurn:
        talk, small = work.talk, self.asker.known.small
        conversation = talk.asked_with(
            (*self.toolbox.specs, *work.own.specs),
            max_tokens=_SMALL_TURN_TOKENS if small else _TURN_TOKENS,
            variant=work.attempt - 1,
            key=work.subtask.subtask_id,
        )
        try:
            spoken = await self.asker.converse(conversation, reported=talk.reported, cause=work.cause)
        except (ModelError, BudgetExhausted):
            talk.reported = len(talk.messages)
            raise
        talk.took(spoken)
        return spoken.turn

    async def _obey(self, work: _Work, turn: ModelTurn) -> AttemptEnd | None:
        """Make the calls that a turn requests. Return the end of the attempt, or None if the attempt goes on."""
        if not turn.calls and turn.cut:
            work.talk.say(_CUT)
            return None
        if not turn.calls:
            return AttemptEnd("completed" if turn.text else "uncertain", turn.text)
        read = {request.id: request.problem for request in turn.calls if request.problem}
        sound = [request for request in turn.calls if not request.problem]
        tools = [request for request in sound if not work.own.has(request)]
        numbers = await work.calls.make(tools, work.attempt, work.cause)
        read |= {key: work.record.text(number, work.record.calls[number - 1]) for key, number in numbers.items()}
        endings: list[AttemptEnd] = []
        for request in sound:
            if not work.own.has(request):
                continue
            said = await work.own.use(request, work.cause)
            endings += [said] if isinstance(said, AttemptEnd) else []
            read[request.id] = said if isinstance(said, str) else _NOTED
        work.talk.returned(turn.calls, read, numbers)
        return endings[0] if endings else None

    async def _compact(self, work: _Work) -> None:
        """Shorten the conversation, and publish the new one."""
        talk = work.talk

        async def summarise(transcript: str) -> str:
            return await self._summary(work, transcript)

        def line_of(returned: Returned) -> str:
            number = talk.numbers.get(returned.call_id)
            return work.record.line(number, work.record.calls[number - 1]) if number else ""

        compaction = Compaction.of(talk.messages, talk.tokens, self.asker.known.window, line_of)
        before = compaction.tokens
        await compaction.run(summarise)
        talk.replace(compaction.messages)
        work.own.recall = True
        compacted = Compacted(
            subtask_id=work.subtask.subtask_id,
            attempt=work.attempt,
            messages=tuple(talk.messages),
            tokens_before=before,
            tokens_after=compaction.tokens,
            summarised=compaction.summarised,
        )
        self.port.publish(compacted, cause=work.cause)

    async def _summary(self, work: _Work, transcript: str) -> str:
        """Return a summary of older turns, with the touched files. The model writes it; if it cannot, the calls are
        listed."""
        changed = listed({path: None for call in work.record.calls for path in call.changes})
        known = f"Files touched so far: {changed}" if changed else "No file was touched so far."
        segments = {
            Segment.SUBTASK: work.subtask.intent,
            Segment.EVIDENCE: without_middle(transcript, self.asker.known.window),
        }
        try:
            found = await self.asker.ask("Summary", Summary, segments, cause=work.cause, max_tokens=_SUMMARY_TOKENS)
            told = found.text()
        except ModelAnswerInvalid:
            told = "\n".join(work.record.line(number, call) for number, call in enumerate(work.record.calls, 1))
        return f"Your earlier turns, in short:\n{told}\n{known}"

    def _result(self, work: _Work, ending: AttemptEnd) -> ExecutionResult:
        refused = bool(work.attempt_calls) and all(call.status is CallStatus.REFUSED for call in work.attempt_calls)
        return ExecutionResult(
            subtask_id=work.subtask.subtask_id,
            attempt=work.attempt,
            status=ending.status,
            output=ending.output,
            sources=() if ending.put_out_by is None else (ending.put_out_by,),
            verbatim=ending.put_out_by is not None,
            tool_calls=tuple(work.record.calls),
            attempt_from=work.first,
            stuck=ending.circled and refused,
            small_model=self.asker.known.small,
            glance=work.glance,
            heard=(*work.subtask.said_ids, *self._inbox.messages),
        )
