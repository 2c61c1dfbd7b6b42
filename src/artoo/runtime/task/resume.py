"""Decide if a task can be resumed from its log, and resume it with its first options.

Reference: SPEC section 10.

log ──► resumption_of ──► refused, because it has ended, its log has gaps, or its project is gone
                    └───► Resumption: the recorded stream, the cost so far, the options of the first run
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from artoo.contracts.confirmation import ConfirmationAnswer, ConfirmationRequest
from artoo.contracts.envelope import Envelope
from artoo.contracts.errors import ConfigurationError
from artoo.contracts.events import ModelCalled, NetworkUsed
from artoo.contracts.execution import CallEffects, ToolCall, ToolCalled, ToolStarted
from artoo.contracts.recording import TaskResumed
from artoo.contracts.settling import ApplyMode
from artoo.contracts.solution import Directive, FinalResult
from artoo.llm.budget import BudgetedModel, cost_of
from artoo.loops.asking import StandingSegments
from artoo.ports.bus import Port
from artoo.ports.spool import Gap
from artoo.redaction import MARK
from artoo.runtime.app.budgets import price_list
from artoo.runtime.app.caller import Caller
from artoo.runtime.app.exception_groups import alone, leaves
from artoo.runtime.app.images import Album
from artoo.runtime.app.run_options import Budgets, RunOptions
from artoo.runtime.app.services import Workshop
from artoo.runtime.changes.startup_recovery import settle_earlier
from artoo.runtime.replay.difference import Difference
from artoo.runtime.replay.recording import Recording, read_recording
from artoo.runtime.replay.stage import taken_up
from artoo.runtime.replay.standing import RESUMABLE, standing, to_drop
from artoo.runtime.task.agent_context import Behalf
from artoo.runtime.task.resumable_tasks import only_agents_stopped, stopped_tasks
from artoo.runtime.task.role_context import Hands
from artoo.runtime.task.start_task import Begun
from artoo.runtime.task.task_header import named, own_version, settings_of
from artoo.runtime.task.task_run import TaskRun
from artoo.tasklog.lock import TaskLock
from artoo.tasklog.reader import TaskLogReader, find_log
from artoo.tools.resume.earlier_runs import Consented, Past
from artoo.workspace.directory import PATIENCE_SECONDS, Workspaces
from artoo.workspace.settlement.finish import outcomes
from artoo.workspace.settlement.history import settled_records
from artoo.workspace.settlement.pending import forget_pending

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Resumption:
    """A task that can be resumed, with its log. `announcement` is the message that it publishes first."""

    recording: Recording
    announcement: TaskResumed

    @property
    def task_id(self) -> str:
        """Return the task's id."""
        return self.recording.task_id

    @property
    def calls(self) -> list[ModelCalled]:
        """Return every model call in the whole log, in order. All of them count as cost of the task."""
        return [e.payload for e in self.recording.all_messages if isinstance(e.payload, ModelCalled)]

    @property
    def options(self) -> RunOptions:
        """Return the options of the task's first run."""
        opened, request = self.recording.opened, self.recording.request
        return RunOptions(
            workspace=Path(request.workspace),
            project=Path(request.project),
            # The mode `all` is not taken from the log, because the user must type it each time or set it in the
            # environment.
            apply=None if opened.apply is ApplyMode.ALL else opened.apply,
            allow=opened.allow,
            budgets=Budgets(calls=opened.max_calls, tokens=opened.max_tokens, money=opened.max_money),
            strict_roles=opened.strict_roles,
            memory=opened.memory,
        )


async def reopen(
    shop: Workshop, task_id: str | None, behalf: Behalf | None = None, caller: Caller | None = None
) -> Begun:
    """Resume a task that was begun earlier. If `task_id` is None, resume the latest task that can be resumed.
    `behalf`: the agent to which the task belongs. `caller`: the program that asks for it.

    Raises ConfigurationError if the task cannot be resumed, and TaskRunning if it is running.
    """
    reader = await asyncio.to_thread(log_to_resume, shop.config.home, task_id)
    found = await asyncio.to_thread(reader.task_id)
    lock = shop.locked(found)
    try:
        resumption = resumption_of(await asyncio.to_thread(list, reader), behalf and behalf.standing)
        return await _taken_up(shop, resumption, lock, behalf or Behalf(), caller)
    except BaseException:
        shop.bus.close_task(found)
        lock.release()
        raise


async def _taken_up(
    shop: Workshop, resumption: Resumption, lock: TaskLock, behalf: Behalf, caller: Caller | None
) -> Begun:
    """Start the same roles again. Their services answer from the log first, and are live afterwards."""
    recording, task_id = resumption.recording, resumption.task_id
    options = replace(resumption.options, caller=caller)
    roots = shop.roots(options)
    answers = shop.answers(options, roots, task_id)
    environ = None if shop.given_model else shop.environ
    spent = cost_of(resumption.calls, await asyncio.to_thread(price_list, shop.config, environ))
    budget = shop.budget(options, spent)
    album = await asyncio.to_thread(Album.kept, shop.config.home, task_id, recording.request.images)
    await settle_earlier(shop.config)
    await asyncio.to_thread(_goes_on, shop.config.home, task_id)
    workspace = behalf.workspace or await shop.workspace(task_id, roots)
    past = await asyncio.to_thread(past_of, recording.all_messages)
    if not await _has_work(shop.config.home, task_id, past, behalf) and not await _has_settled(shop, task_id):
        raise ConfigurationError(
            f"what task {task_id} had changed was applied or discarded since; it cannot go on from there: "
            "give the request again"
        )
    memory = await shop.memory(options)
    mode = options.mode(shop.config.apply)
    servers = caller.servers if caller is not None else ()

    made: list[Hands] = []

    async def hands(gate: Port) -> Hands:
        text = recording.request.text
        given = (gate, workspace, text, mode, past, behalf.settling, servers)
        made.append(await shop.hands(*given, permitted=answers.policies))
        return behalf.hands(made[-1])

    async def ended(result: FinalResult) -> None:
        for each in made[-1:]:
            if each.ended is not None:
                await each.ended(result)

    stage, conductor = await taken_up(
        recording,
        resumption.announcement.model_copy(update={"asked_by": caller and caller.asked_by}),
        hands,
        bus=shop.bus,
        model=album.shown_to(BudgetedModel(behalf.model(shop.model), budget)),
        clock=shop.clock,
        ids=shop.ids,
        memory=memory,
    )
    settings = settings_of(recording.opened, recording.request.project)
    standing = replace(settings.standing, check=behalf.standing.check)
    settings = replace(settings, standing=standing)
    task = TaskRun(task_id, stage, settings, budget.cost, answers, raise_limits=budget.raise_limits)
    return Begun(
        task,
        lambda: alone(resumed(task.follow(conductor), resumption)),
        lock,
        workspace,
        tuple(recording.stream),
        ended,
    )


async def _has_settled(shop: Workshop, task_id: str) -> bool:
    """Return whether the process died after it applied the changes and before it published the result. The
    workspace no longer exists then."""
    # The log may not contain the apply, but the undo record does.
    return bool(await asyncio.to_thread(outcomes, shop.config.home, task_id, "end"))


async def _has_work(home: Path, task_id: str, past: Past, behalf: Behalf) -> bool:
    """Return whether the changes that the task made in its workspace still exist."""
    if not any(call.changes for call in past.calls):
        return True
    if behalf.workspace is not None:
        return behalf.kept
    return await asyncio.to_thread(Workspaces(home).find, task_id) is not None


def log_to_resume(home: Path, task_id: str | None) -> TaskLogReader:
    """Return the log of a task (the beginning of its id is enough). If no id is given, return that of the latest
    task that can be resumed.

    Raises ConfigurationError. Blocking.
    """
    # Running tasks and tasks of agents are not searched, because agents resume their own tasks.
    if task_id is not None:
        return find_log(home, task_id)
    dismissed = {one.task_id for one in settled_records(home) if one.what == "discarded"}
    for summary in stopped_tasks(home):
        if summary.task_id in dismissed:
            continue
        return TaskLogReader(summary.directory)
    if only_agents_stopped(home):
        raise ConfigurationError(
            "only work of standing agents has stopped before its end; artoo serve continues it"
        )
    raise ConfigurationError(f"no task in {home} has stopped before its end (`artoo log list` shows all tasks)")


def resumption_of(log: Sequence[Envelope | Gap], agent: StandingSegments | None = None) -> Resumption:
    """Check the whole log of a task, and return how to resume it. `agent`: the agent to which the task belongs.
    Raises ConfigurationError if the task cannot be resumed.
    """
    messages = [item for item in log if isinstance(item, Envelope)]
    stream = standing(messages)
    _refuse_if_done(stream)
    dropped = to_drop(stream)
    recording = read_recording(log, dropped)
    if agent is not None and recording.opened.standing != named(agent):
        raise ConfigurationError(f"task {recording.task_id} was begun with other knowledge than the agent has now")
    if recording.opened.standing and agent is None:
        raise ConfigurationError(
            f"task {recording.task_id} was done for a standing agent, with its rights, in a workspace of its own; "
            "`artoo serve` continues the agent's work"
        )
    if not Path(recording.request.project).is_dir():
        raise ConfigurationError(
            f"task {recording.task_id} worked in {recording.request.project}, which is not there any more; "
            "restore it, or run the request again in another directory"
        )
    last = recording.stream[-1].id
    return Resumption(recording, TaskResumed(after=last, dropped=dropped, artoo=own_version()))


async def resumed(following: Coroutine[None, None, T], resumption: Resumption) -> T:
    """Run the task to its end. Raises ConfigurationError if the roles of this version do not publish the same
    messages as the log contains."""
    found: list[Difference] = []
    try:
        return await following
    except* Difference as group:
        found.extend(leaves(group))
    recorded_by = resumption.recording.opened.artoo
    versions = (
        "" if recorded_by == own_version() else f" (it was run by artoo {recorded_by}, this is {own_version()})"
    )
    raise ConfigurationError(
        f"task {resumption.task_id} cannot go on: a replay of its log does not reach the state in which it "
        f"stopped{versions}: {found[0]}. "
        "Nothing was done. Run the request again"
    )


def _refuse_if_done(stream: Sequence[Envelope]) -> None:
    last = stream[-1].payload if stream else None
    if not isinstance(last, FinalResult) or last.stopped_by in RESUMABLE:
        return
    how = "abandoned" if last.directive is Directive.ABANDON else "done"
    why = f" ({last.stopped_by.value})" if last.stopped_by is not None else ""
    first = last.summary.strip().splitlines()
    raise ConfigurationError(
        f"task {stream[0].task_id} has ended, it was {how}{why}, and cannot go on: {first[0] if first else ''}"
    )


def _goes_on(home: Path, task_id: str) -> None:
    """Delete the record of pending changes, because the task continues to work in its workspace. Blocking.

    Raises SandboxError.
    """
    Workspaces(home).require_readable(task_id)
    directory = Workspaces(home).find(task_id)
    if directory is not None:
        with directory.locked(PATIENCE_SECONDS):
            forget_pending(directory)


def past_of(envelopes: Iterable[Envelope]) -> Past:
    """Return the past of a task that is not running in any process. `envelopes` is its whole log, in order."""
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
    """The state of a task's calls and processes, computed from the messages in its log. `running`: the processes by
    id, each with its subtask and `ID (command)`.
    """

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
        """Record which processes are still running after a call."""
        if call.tool == "process":
            ended = call.target.rpartition(" ")[2]
            if not call.process and not call.never_ran:
                self.running.pop(ended, None)
        elif call.process:
            self.running[call.process] = subtask, f"{call.process} ({call.target})"

    def _start(self, started: ToolStarted) -> None:
        """Record that a call was started."""
        # If a call was started twice, the start whose effects reach further is kept.
        known = self.started.get(started.act)
        if known is None or known.effects is not CallEffects.OUTSIDE:
            self.started[started.act] = started
