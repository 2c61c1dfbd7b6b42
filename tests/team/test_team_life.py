"""Identities, limits, letters, and how work is given back."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from team_world import crew, exists, plan, settled, shell, write

from artoo.agents.board.worker import Work
from artoo.agents.identity.folders import create_agent, folder_of
from artoo.agents.storage.monotonic_clock import RENEW_SECONDS
from artoo.contracts.agents import (
    OPERATOR,
    AgentChanged,
    AgentWoken,
    BoardState,
    PulseRecorded,
    ReplyMissed,
    TrustLevel,
)
from artoo.contracts.errors import ConfigurationError
from artoo.contracts.events import ModelCalled
from artoo.contracts.execution import ToolCalled, ToolStarted
from artoo.runtime.task.resume import log_to_resume
from artoo.team.locks import only_instance, serving
from artoo.team.team import UPKEEP_SECONDS
from artoo.testing import Asked, FakeClock, too_many_requests
from artoo.testing.replies import Scripted, with_body

ONE = {"cyd": TrustLevel.SENIOR}
TWO = {"ada": TrustLevel.SENIOR, "cyd": TrustLevel.SENIOR}


def counting(asked: Asked) -> Scripted:
    """A model that answers every request with a number that a command gave it."""
    if asked.contract == "Plan":
        done = {"text": "it ran", "check": {"check": "tool_succeeded"}}
        return plan("count", done, tool="shell")
    return shell("echo 42")


async def test_a_letter_is_answered_inside_the_timeout(place: Path) -> None:
    """Mail wakes its recipient: with a pulse of 120 s a question is answered before any time has passed."""
    clock = FakeClock()
    async with crew(place, counting, trust=ONE, clock=clock) as team:
        asking = asyncio.create_task(team.office.asking.ask(OPERATOR, "cyd", "how many are there?", seconds=30.0))
        async with asyncio.timeout(20):
            reply = await asking
        assert reply.missed is None
        assert "42" in reply.text
        assert clock.monotonic() < 30.0
        (kept,) = await team.office.mailbox.sent(OPERATOR)
        assert kept.partition == "archive"


async def test_answers_are_not_answered(place: Path) -> None:
    """A letter that answers another is read and filed: two agents do not thank each other for ever."""
    async with crew(place, counting, trust=TWO) as team:
        first = await team.office.mailbox.send("ada", "cyd", "how many are there?")
        answers = await settled(team, lambda: team.office.mailbox.list("ada", "archive"))
        assert answers[0].mail.in_reply_to == first.id and answers[0].note == "read"
        assert len(await team.office.mailbox.sent("ada")) == 1


async def test_agents_write_letters(place: Path) -> None:
    """`send_mail` leaves a letter and goes on; a letter to nobody is a failed call with the names there are."""
    steps = iter(
        (
            with_body({"tool": "send_mail", "input": "ada"}, "for you", "text"),
            with_body({"tool": "send_mail", "input": "ada"}, "for you too", "text"),
            with_body({"tool": "send_mail", "input": "zed"}, "who are you", "text"),
            with_body({"tool": "answer"}, "42 sent", "text"),
        )
    )

    def script(asked: Asked) -> Scripted:
        if "The request is a letter from cyd" in asked.user:
            return counting(asked)
        if asked.contract == "Plan":
            return plan("tell ada", {"text": "told", "check": {"check": "tool_succeeded"}}, tool="send_mail")
        return next(steps)

    async with crew(place, script, trust=TWO) as team:
        task = await team.add("tell ada twice", "cyd")
        await team.until(task, BoardState.COMPLETED, BoardState.FAILED, BoardState.REVIEW)
        sent = [kept.mail.text for kept in await team.office.mailbox.sent("cyd") if kept.mail.in_reply_to is None]
        assert sent == ["for you", "for you too"]
        refused = [one.payload.call for one in team.envelopes if isinstance(one.payload, ToolCalled)]
        assert any("Nobody is called 'zed'" in (call.reason or "") for call in refused)


async def test_limits_are_enforced(place: Path) -> None:
    """A tool that the identity forbids is neither offered nor run."""
    offered: list[str] = []

    def script(asked: Asked) -> Scripted:
        offered.append(asked.system + asked.user)
        match asked.contract:
            case "Plan":
                return plan("count", {"text": "it ran", "check": {"check": "tool_succeeded"}}, tool="python")
            case "ExecutorStep":
                return shell("echo 42")
            case _:
                return {"next_moves": []}

    async with crew(place, script, trust=ONE, limits={"cyd": ("shell",)}) as team:
        task = await team.add("count them", "cyd")
        await team.until(task, BoardState.FAILED)
        assert not any("- shell:" in system for system in offered)
        assert "You have no right to use: shell." in offered[0]
        calls = [one.payload.call for one in team.envelopes if isinstance(one.payload, ToolCalled)]
        assert all(call.status == "refused" for call in calls if call.tool == "shell")


async def test_changed_identity_stops_the_agent(place: Path) -> None:
    """An identity file that is changed while its agent works stops the next prompt; the task waits."""
    changed = False

    def script(asked: Asked) -> Scripted:
        nonlocal changed
        if asked.contract != "Plan":
            return write("n.txt", "n\n")
        if not changed:
            changed = True
            file = place / "home" / "agents" / "cyd" / "identity.yaml"
            file.write_text(file.read_text() + "# you may do everything now\n")
        return plan("write n.txt", exists("n.txt"))

    async with crew(place, script, trust=ONE) as team:
        task = await team.add("write n.txt", "cyd")
        held = await team.until(task, BoardState.BLOCKED)
        record = await team.office.registry.get("cyd")
        assert "not the accepted one" in record.stopped
        assert not (place / "project" / "n.txt").exists()
        calls = [one.payload for one in team.envelopes if isinstance(one.payload, ModelCalled)]
        assert [call.contract for call in calls] == ["Plan"]
        folder = (await asyncio.to_thread(team.office.folders)).named("cyd")
        await team.office.registry.accept(folder, OPERATOR)
        await team.until(held, BoardState.COMPLETED)
    changes = [one.payload for one in team.envelopes if isinstance(one.payload, AgentChanged)]
    assert [change.change for change in changes][-2:] == ["stopped", "accepted"]


async def test_a_stop_gives_work_back(place: Path) -> None:
    """What is worked on when the team stops is given back, and the next start goes on with the very step."""
    hold = place / "project" / "hold"

    def script(asked: Asked) -> Scripted:
        if asked.contract == "Plan":
            return plan("write n.txt", exists("n.txt"))
        return shell("while test -e hold; do sleep 0.1; done") if hold.exists() else write("n.txt", "n\n")

    async with crew(place, script, trust=ONE) as team:
        hold.touch()
        task = await team.add("write n.txt", "cyd")

        async def under_way() -> bool:
            return any(isinstance(one.payload, ToolStarted) for one in team.envelopes)

        assert await settled(team, under_way)
        await team.until(task, BoardState.IN_PROGRESS)
    assert list((place / "project").glob("*")) == [hold]
    with pytest.raises(ConfigurationError, match="has stopped before its end"):
        log_to_resume(place / "home", None)

    hold.unlink()
    async with crew(place, script, trust=ONE) as team:
        await team.until(task, BoardState.COMPLETED)
        assert "in_progress > blocked by runtime" in await team.moves(task)


async def test_throttling_gives_work_back(place: Path) -> None:
    """A model that cannot be had fails no task: it is given back, and the heart backs off."""
    async with crew(place, lambda asked: too_many_requests(1), trust=ONE) as team:
        task = await team.add("write n.txt", "cyd")
        await team.until(task, BoardState.BLOCKED)

        async def backed_off() -> bool:
            told = [one.payload for one in team.envelopes if isinstance(one.payload, PulseRecorded | AgentWoken)]
            return any("backing off" in record.why for record in told)

        assert await settled(team, backed_off)


async def test_a_missing_project_blocks(place: Path) -> None:
    """A project that is not there blocks its task, with the reason."""
    async with crew(place, counting, trust=ONE) as team:
        task = await team.office.board.add("count", OPERATOR, assignee="cyd", project=str(place / "nowhere"))
        await team.until(task, BoardState.BLOCKED)
        log = await team.office.board.log(task.id)
        assert "does not exist" in str(log[-1])


async def test_new_agents_join(place: Path) -> None:
    """An agent that is made while the team works is recruited at the next upkeep."""
    clock = FakeClock()
    async with crew(place, counting, trust={}, clock=clock) as team:
        identity = create_agent(place / "home", "eve", role="clerk", persona="new")
        await team.office.registry.register("eve", OPERATOR, sha256=identity.sha256)
        (place / "home" / "agents" / "broken").mkdir()
        clock.advance(UPKEEP_SECONDS)

        async def looked() -> bool:
            return bool(team.team.problems)

        assert await settled(team, looked)
        assert "eve" in team.team.heartbeats
        (problem,) = team.team.problems
        assert "broken" in problem


async def test_after_a_pause_who_works_here_renews_first(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that was stopped for long does not take its own living work for that of a dead one."""
    clock, recovered = FakeClock(), list[object]()
    whole = Work.recover

    async def recover(work: Work) -> object:
        recovered.append(work)
        return await whole(work)

    monkeypatch.setattr(Work, "recover", recover)
    async with crew(place, counting, trust=ONE, clock=clock) as team:
        recovered.clear()
        begun = len(clock.slept)
        clock.advance(3 * UPKEEP_SECONDS)

        async def gave_way() -> bool:
            return RENEW_SECONDS in clock.slept[begun:]

        assert await settled(team, gave_way)
        assert not recovered
        clock.advance(RENEW_SECONDS)

        async def looked() -> bool:
            return bool(recovered)

        assert await settled(team, looked)


async def test_who_retires_stops_and_comes_back(place: Path) -> None:
    """Its heart ends at the next upkeep, without a word every two minutes after; accepted, it works again."""
    clock = FakeClock()
    async with crew(place, counting, trust=ONE, clock=clock) as team:
        registry = team.office.registry
        await registry.retire("cyd", OPERATOR)
        clock.advance(UPKEEP_SECONDS)

        async def stopped() -> bool:
            return "cyd" not in team.team.heartbeats

        assert await settled(team, stopped)
        assert not team.team.problems
        await registry.accept(folder_of(team.office.home, "cyd"), OPERATOR)
        clock.advance(UPKEEP_SECONDS)

        async def works() -> bool:
            return "cyd" in team.team.heartbeats

        assert await settled(team, works)
        await team.office.mailbox.send(OPERATOR, "cyd", "how many are there?")

        async def answered() -> bool:
            return bool(await team.office.mailbox.list(OPERATOR, "inbox"))

        assert await settled(team, answered)


def test_one_instance(tmp_path: Path) -> None:
    """A second `artoo serve` of a home is refused and told which process has it."""
    assert serving(tmp_path) is None
    with only_instance(tmp_path):
        assert serving(tmp_path) is not None
        with pytest.raises(ConfigurationError, match=f"process {serving(tmp_path)}"), only_instance(tmp_path):
            pytest.fail("two at once")
    assert serving(tmp_path) is None


async def test_a_workspace_that_cannot_be_made_ends_nothing(place: Path) -> None:
    """What is in the way of the workspace is told; the letter and the task wait, the team goes on."""
    (place / "out").write_text("a file")
    async with crew(place, counting, trust=ONE) as team:
        task = await team.add("count", "cyd")
        await team.office.mailbox.send(OPERATOR, "cyd", "how many?")

        async def troubled() -> bool:
            return any("cannot be made" in str(one.payload) for one in team.envelopes)

        await settled(team, troubled)
        assert (await team.office.board.get(task.id)).state is not BoardState.FAILED
        assert await team.office.mailbox.unread("cyd") in (0, 1)


async def test_patrol_reports(place: Path) -> None:
    """A due item of HEARTBEAT.md is done at the agent's desk, and the operator gets one letter about it."""
    folder = place / "home" / "agents" / "cyd"

    async with crew(place, counting, trust=ONE):
        pass  # cyd is made; its heartbeat must not see the item before the second crew is watched
    (folder / "HEARTBEAT.md").write_text("- every: 1d Count what is there.\n")
    async with crew(place, counting, trust=ONE) as team:
        team.team.heartbeats["cyd"].wake("test")
        letters = await settled(team, lambda: team.office.mailbox.list(OPERATOR, "inbox"))
        assert letters[0].mail.text.startswith("Patrol: Count what is there.")
        assert not any(isinstance(one.payload, ReplyMissed) for one in team.envelopes)


async def test_a_report_that_nobody_takes_is_no_reason_to_do_it_again(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The operator's mailbox is full: the item is done, with what it cost, and the agent is not set back."""
    folder = place / "home" / "agents" / "cyd"
    monkeypatch.setattr("artoo.agents.mail.rows.MOST_UNREAD", 0)
    monkeypatch.setattr("artoo.agents.mail.rows.MOST_WAITING", 0)
    async with crew(place, counting, trust=ONE):
        pass  # cyd is made; its heartbeat must not see the item before the second crew is watched
    (folder / "HEARTBEAT.md").write_text("- every: 1d Count what is there.\n")
    async with crew(place, counting, trust=ONE) as team:
        team.team.heartbeats["cyd"].wake("test")

        async def worked() -> list[AgentWoken | PulseRecorded]:
            found = [one.payload for one in team.envelopes]
            return [one for one in found if isinstance(one, AgentWoken | PulseRecorded) and one.outcome == "run"]

        record = (await settled(team, worked))[0]
        assert "patrol ×1" in record.why and "backing off" not in record.why and record.llm_calls
        assert not await team.office.mailbox.list(OPERATOR, "inbox")


async def test_the_operator_is_answered_in_words(place: Path) -> None:
    """What could not be done is said as artoo says it to a person, with no signs; what waits is named."""
    (place / "out" / "agents" / "cyd").mkdir(parents=True)
    (place / "out" / "agents" / "cyd" / "old.txt").write_text("mine\n")

    def script(asked: Asked) -> Scripted:
        if asked.contract == "Plan":
            return plan("remove old.txt", {"text": "it ran", "check": {"check": "tool_succeeded"}}, tool="shell")
        return shell("rm old.txt && echo removed")

    async with crew(place, script, trust=ONE) as team:
        await team.office.mailbox.send(OPERATOR, "cyd", "remove old.txt")
        (letter,) = await settled(team, lambda: team.office.mailbox.list(OPERATOR, "inbox"))
        assert "removed" in letter.mail.text and "■" not in letter.mail.text
        assert "pending your approval" in letter.mail.text and "artoo diff " in letter.mail.text


async def test_an_agent_that_asks_back_knows_what_it_asked(place: Path) -> None:
    """The next letter is shown with the last ones of the two, and of nobody else."""
    seen: list[str] = []

    def script(asked: Asked) -> Scripted:
        if asked.contract == "Plan":
            seen.append(asked.user)
        return counting(asked)

    async with crew(place, script, trust=TWO) as team:
        mailbox = team.office.mailbox
        await mailbox.send("ada", "cyd", "a letter of ada's")
        await mailbox.send(OPERATOR, "cyd", "write the price list")

        async def answered(count: int) -> bool:
            return len(await mailbox.list(OPERATOR, "inbox")) == count

        assert await settled(team, lambda: answered(1))
        seen.clear()
        await mailbox.send(OPERATOR, "cyd", "Swiss francs please")
        assert await settled(team, lambda: answered(2))
        asked = next(one for one in seen if "Swiss francs please" in one)
        assert "operator: write the price list" in asked and "cyd: " in asked
        assert "a letter of ada's" not in asked


async def test_the_homes_routine_reaches_every_agent(place: Path) -> None:
    """`patrol_routine` of the seed's configuration is the patrol of each agent, beside its own HEARTBEAT.md."""
    routine = place / "home" / "config" / "heartbeat_patrol.md"
    routine.parent.mkdir(parents=True, exist_ok=True)
    routine.write_text("- every: 1d Count what is there.\n")
    async with crew(place, counting, trust=ONE | {"dan": TrustLevel.PROBATION}) as team:

        async def both() -> bool:
            letters = await team.office.mailbox.list(OPERATOR, "inbox")
            return {one.mail.sender for one in letters} == {"cyd", "dan"}

        for name in ("cyd", "dan"):
            team.team.heartbeats[name].wake("test")
        await settled(team, both)
