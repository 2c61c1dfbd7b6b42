"""An agent works on a task of the board: a layer of its own, the dual loop, a submission (SPEC section 11)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from artoo.agents.board_rows import TaskClaim
from artoo.agents.cognition_store import Session
from artoo.agents.duties import Done, throttled_ending
from artoo.contracts.agents import BoardTask
from artoo.contracts.errors import ClaimLost, IdentityRefused, SandboxError
from artoo.contracts.solution import Directive, FinalResult, StoppedBy
from artoo.prompts.segments import Segment
from artoo.runtime.behalf import Behalf
from artoo.runtime.options import RunOptions
from artoo.runtime.team.bench import Bench
from artoo.runtime.team.dossier import Gathering, keep
from artoo.runtime.team.holding import held
from artoo.runtime.team.member import Member
from artoo.tools.layers.layer import Layer
from artoo.tools.layers.submission import submit

_STOPPED = "artoo was stopped while it was worked on"


async def work_on(bench: Bench, member: Member, claim: TaskClaim) -> Done:
    """Works on the task to its submission, its failure, or until it must be given back.

    Raises ActivityStoreError. A claim that is lost meanwhile ends the work, which then counts for
    nothing.
    """
    try:
        return await _work_on(bench, member, claim)
    except ClaimLost:
        return Done(items=1)
    except asyncio.CancelledError:
        await asyncio.shield(_give_back(bench, claim, _STOPPED))
        raise


async def _work_on(bench: Bench, member: Member, claim: TaskClaim) -> Done:
    try:
        layer = await asyncio.to_thread(bench.begin_layer, claim.task)
    except SandboxError as error:
        await bench.board.work.hold_up(claim, str(error))
        return Done(items=1)
    gathering = Gathering()
    detach = bench.artoo.bus.attach(gathering)
    try:
        run = _run(bench, member, claim, layer, gathering)
        result = await held(run, lambda: bench.board.work.renew(claim), bench.clock)
    finally:
        detach()
    return await _settle(bench, member, claim, layer, gathering, result)


async def _run(bench: Bench, member: Member, claim: TaskClaim, layer: Layer, gathering: Gathering) -> FinalResult:
    task = claim.task

    async def began(run: str) -> None:
        gathering.run = run
        await bench.board.work.began(claim, run)

    behalf = Behalf(
        standing=member.standing(await _context(bench, member, task)),
        must_not=member.must_not,
        tools=bench.mail_tools(member.name, f"{task.id}#{task.submission}"),
        roots=layer.roots,
        tier=member.tier,
        began=began,
    )
    options = RunOptions(budgets=member.budgets, behalf=behalf)
    return await bench.artoo.run(layer.asked(asked_for(task)), options=options)


def asked_for(task: BoardTask) -> str:
    """The request with what the last reviewer wants besides: criteria follow from both."""
    return f"{task.text}\nThe last version was sent back: {task.notes[-1]}" if task.notes else task.text


async def _context(bench: Bench, member: Member, task: BoardTask) -> dict[Segment, str]:
    """What the agent knows, and what reviewers said about its earlier work on this task."""
    return {
        Segment.CURATED_KNOWLEDGE: await bench.knowledge(member.name, task.text),
        Segment.SESSION: _reviews(task.notes[:-1]),
    }


def _reviews(notes: Sequence[str]) -> str:
    if not notes:
        return ""
    lines = "\n".join(f"- {note}" for note in notes)
    return f"Earlier versions of this were sent back too:\n{lines}"


async def _settle(
    bench: Bench, member: Member, claim: TaskClaim, layer: Layer, gathering: Gathering, result: FinalResult
) -> Done:
    calls = result.cost.llm_calls
    throttled = throttled_ending(result)
    summary = layer.told(result.summary)
    if throttled is not None:
        await _give_back(bench, claim, throttled)
        return Done(items=1, llm_calls=calls, throttled=throttled)
    if result.stopped_by is StoppedBy.INTERRUPTED:
        await _give_back(bench, claim, _STOPPED)
        return Done(items=1, llm_calls=calls)
    session = Session(gathering.run, "task", summary, board_task=claim.task.id)
    await bench.remember(member.name, session, claim.task.text, result)
    if result.directive is Directive.ABANDON:
        await _end_without_result(bench, member, claim, _why(result), summary)
        return Done(items=1, llm_calls=calls)
    told = result.model_copy(update={"summary": summary})
    await _submit(bench, member, claim, layer, gathering, told)
    return Done(items=1, llm_calls=calls)


async def _end_without_result(bench: Bench, member: Member, claim: TaskClaim, why: str, summary: str) -> None:
    """It failed, unless it was the identity that somebody changed: then the task waits for the agent."""
    try:
        await member.registry.check(member.folder)
    except IdentityRefused as error:
        await _give_back(bench, claim, str(error))
    else:
        await bench.board.work.fail(claim, why, summary)


def _why(result: FinalResult) -> str:
    stopped = f" ({result.stopped_by.value})" if result.stopped_by is not None else ""
    return f"abandoned{stopped}: {result.summary}"


async def _submit(
    bench: Bench, member: Member, claim: TaskClaim, layer: Layer, gathering: Gathering, result: FinalResult
) -> None:
    """Freezes the work, keeps its dossier, and hands it in; what needs no review passes if Law 1 lets it."""
    task = claim.task
    dossier = gathering.dossier(result, task.id, task.submission + 1, member.name, asked_for(task), layer.told)
    try:
        await asyncio.to_thread(submit, layer, bench.layers.limits)
        await asyncio.to_thread(keep, layer, dossier)
    except (SandboxError, OSError) as error:
        await bench.board.work.fail(claim, f"its files cannot be submitted: {error}", result.summary)
        return
    submitted, review = await bench.merges.submit(claim, result.summary)
    if not review:
        await bench.approvals.pass_by_policy(submitted)


async def _give_back(bench: Bench, claim: TaskClaim, reason: str) -> None:
    """Somebody takes it up again; a claim that is over already is no error."""
    try:
        await bench.board.work.give_back(claim, reason)
    except ClaimLost:
        return
