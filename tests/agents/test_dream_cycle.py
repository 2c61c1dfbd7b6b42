"""The dream cycle: when it is due, what it promotes and purges, and that killing it at any line loses nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from engines import open_books

from artoo.agents.cognition.consolidate import DreamCycle, DreamSettings
from artoo.agents.cognition.consolidation_plan import Promotion
from artoo.agents.cognition.observations import observation_of
from artoo.agents.cognition.store import CognitionStore, Session
from artoo.agents.heartbeat.ledger import Beat, Pulses
from artoo.agents.mail.outbox import Outbox
from artoo.agents.storage.database import Database
from artoo.contracts.agents import DreamCycleReport
from artoo.contracts.base import Contract
from artoo.contracts.errors import ArtooError, MemoryStoreError
from artoo.contracts.roles import Role
from artoo.contracts.solution import Directive, FinalResult
from artoo.testing.clock import FakeClock
from artoo.testing.ids import SequentialIds

DAY = 86_400.0
DONE = FinalResult(task_id="t", summary="s", directive=Directive.ACCEPT)


@dataclass
class Mind:
    """One agent's memory on disk, and what it gave to shared memory."""

    clock: FakeClock
    database: Database
    home: Path
    ids: SequentialIds = field(default_factory=SequentialIds)
    promoted: list[Promotion] = field(default_factory=list[Promotion])
    broken: ArtooError | None = None
    remembered: int = 0

    @property
    def path(self) -> Path:
        return self.home / "knowledge.md"

    @property
    def store(self) -> CognitionStore:
        return CognitionStore(self.database, "ada", 90)

    async def remember(self, session: Session, request: str) -> bool:
        return await self.store.keep(session, observation_of(request, DONE))

    def cycle(self, *, characters: int = 15_000) -> DreamCycle:
        """A cycle as a fresh process would make it."""

        async def promote(promotion: Promotion) -> None:
            if self.broken is not None:
                raise self.broken
            self.promoted.append(promotion)

        settings = DreamSettings(characters=characters)
        return DreamCycle("ada", self.store, self.path, self.clock, self.ids, promote=promote, settings=settings)

    async def did(self, *requests: str) -> None:
        """Sessions that ended well."""
        for request in requests:
            self.remembered += 1
            await self.remember(Session(f"s{self.remembered}", "task", request), request)

    async def reports(self) -> list[DreamCycleReport]:
        """What the stream heard since the last call."""
        heard: list[DreamCycleReport] = []

        def publish(sender: Role, subject: str, payload: Contract) -> None:
            assert (sender, subject) == (Role.HEARTBEAT, "ada")
            assert isinstance(payload, DreamCycleReport)
            heard.append(payload)

        await Outbox(self.database, publish).drain()
        return heard


@pytest.fixture
async def mind(tmp_path: Path, engine: str) -> AsyncGenerator[Mind]:
    clock = FakeClock()
    async with await open_books(tmp_path, clock) as database:
        yield Mind(clock, database, tmp_path)


async def test_what_happened_three_times_becomes_knowledge(mind: Mind) -> None:
    """Promoted into the file and into shared memory, reported once; twice is not enough."""
    await mind.did("sum up a.csv", "sum up b.csv", "sum up c.csv", "greet", "greet")
    report = await mind.cycle().run()
    assert [text.startswith('"sum up c.csv": done (3 times') for text in report.promoted] == [True]
    assert (report.observations, report.kept, report.llm_calls, report.error) == (5, 5, 0, None)
    assert '- "sum up c.csv": done (3 times' in mind.path.read_text()
    assert "greet" not in mind.path.read_text()
    assert [promotion.seen for promotion in mind.promoted] == [3]
    (heard,) = await mind.reports()
    assert heard == report.model_copy(update={"event": heard.event})


async def test_the_buffer_keeps_its_last_ten_and_counts_each_observation_once(mind: Mind) -> None:
    """What stays in the buffer is not counted again, and what earlier cycles have seen is not forgotten."""
    await mind.did(*(f"single {'x' * n}" for n in range(40)), *["twice"] * 2)
    first = await mind.cycle().run()
    assert (first.kept, first.promoted) == (10, ())
    await mind.did("other")
    second = await mind.cycle().run()
    assert (second.observations, second.kept, second.promoted) == (11, 10, ())
    await mind.did("twice")
    third = await mind.cycle().run()
    assert [text.startswith('"twice": done (3 times') for text in third.promoted] == [True]


async def test_a_cycle_is_due_at_fifty_observations_or_after_a_day(mind: Mind) -> None:
    """Neither before, nor without anything new."""
    cycle = mind.cycle()
    assert await cycle.due() is None
    await mind.did(*["greet"] * 49)
    assert await cycle.due() is None
    await mind.did("greet")
    assert await cycle.due() == "50 observations"
    assert (await cycle.do()).items == 1
    assert await cycle.due() is None
    mind.clock.advance(2 * DAY)
    assert await cycle.due() is None
    await mind.did("greet")
    assert await cycle.due() == "its time has come"


async def test_one_observation_waits_a_day(mind: Mind) -> None:
    """The day counts from the first observation when there was no cycle yet."""
    await mind.did("greet")
    mind.clock.advance(DAY - 1)
    assert await mind.cycle().due() is None
    mind.clock.advance(1)
    assert await mind.cycle().due() is not None


async def test_sessions_go_after_ninety_days_and_their_detail_with_the_cycle(mind: Mind) -> None:
    """Old sessions make a cycle due by themselves; a young one keeps its summary, without detail."""
    await mind.remember(Session("old", "task", "old", detail='{"a": 1}'), "old")
    mind.clock.advance(91 * DAY)
    await mind.remember(Session("new", "mail", "new", detail='{"a": 1}', mail="m"), "new")
    await mind.cycle().run()
    assert [session for _, session in await mind.store.sessions()] == [Session("new", "mail", "new", mail="m")]
    mind.clock.advance(91 * DAY)
    assert await mind.cycle().due() is not None


async def test_a_session_is_remembered_once(mind: Mind) -> None:
    """A task that was resumed after a crash is one experience."""
    session = Session("s", "task", "greet")
    assert await mind.remember(session, "greet")
    assert not await mind.remember(session, "greet")
    assert (await mind.store.buffer()).observations == 1


async def test_shared_memory_that_is_away_delays_and_loses_nothing(mind: Mind) -> None:
    """What was learnt stays pending, is tried again an hour later, and is given once it can be."""
    await mind.did(*["greet"] * 3)
    mind.broken = MemoryStoreError("locked")
    cycle = mind.cycle()
    assert "written later: locked" in ((await cycle.run()).error or "")
    assert await cycle.due() is None
    mind.clock.advance(3_600)
    assert await cycle.due() == "a cycle that was cut off"
    mind.broken = None
    report = await cycle.run()
    assert len(report.promoted) == len(mind.promoted) == 1
    assert [each.error is None for each in await mind.reports()] == [False, True]


async def test_a_file_that_cannot_be_read_delays_and_loses_nothing(mind: Mind) -> None:
    """Bad bytes in knowledge.md are reported; the observations stay."""
    mind.path.write_bytes(b"\xff\xfe")
    await mind.did(*["greet"] * 3)
    assert "cannot be read" in ((await mind.cycle().run()).error or "")
    mind.path.write_text("mine\n")
    assert len((await mind.cycle().run()).promoted) == 1
    assert mind.path.read_text().startswith("mine\n")


async def test_an_edit_between_commit_and_file_is_kept(mind: Mind) -> None:
    """The operator writes while a cycle is cut off: both texts are in the file afterwards."""
    await mind.did(*["greet"] * 3)
    mind.broken = MemoryStoreError("locked")
    await mind.cycle().run()
    mind.path.write_text("written by hand\n")
    mind.broken = None
    await mind.cycle().run()
    text = mind.path.read_text()
    assert text.startswith("written by hand\n")
    assert '- "greet": done' in text


async def test_knowledge_stays_within_its_limit_and_says_what_went(mind: Mind) -> None:
    """The least valuable line makes room, and the report names it."""
    await mind.did(*["alpha one"] * 3)
    await mind.cycle(characters=200).run()
    mind.clock.advance(60 * DAY)
    await mind.did(*["beta " + "two " * 30] * 4)
    report = await mind.cycle(characters=260).run()
    assert len(mind.path.read_text()) <= 260
    assert [text.startswith('"alpha one"') for text in report.trimmed] == [True]
    assert [text.startswith('"beta') for text in report.promoted] == [True]


async def test_old_beats_are_forgotten_but_not_the_last(mind: Mind) -> None:
    """After the retention only the newest row remains, so that the numbers go on."""
    now, ledger = mind.clock.now(), Pulses(mind.database)
    await ledger.record("ada", Beat(1, now), "missed")
    await ledger.record("ada", Beat(2, now), "idle")
    mind.clock.advance(91 * DAY)
    await mind.did(*["greet"] * 3)
    await mind.cycle().run()
    assert [pulse.outcome for pulse in await ledger.recent("ada")] == ["idle"]
    assert await ledger.resumed("ada") == Beat(2, now)


def _killed(place: Path, points: Sequence[int]) -> list[dict[str, object]]:
    script = Path(__file__).with_name("dreaming_process.py")
    command = [sys.executable, "-W", "ignore", str(script), str(place), *map(str, points)]
    lines = subprocess.run(command, check=True, capture_output=True, text=True, timeout=1_200).stdout.splitlines()
    return [json.loads(line) for line in lines]


def _check(unharmed: dict[str, object], harmed: dict[str, object]) -> None:
    """After a restart everything is as if nothing had been killed."""
    for what in ("knowledge", "observations", "patterns", "consolidated", "pending", "promoted", "sound"):
        assert harmed[what] == unharmed[what], f"killed at line {harmed['point']}: {what}"
    assert harmed["reports"] == 1, f"killed at line {harmed['point']}"


def test_a_cycle_killed_at_any_step_is_finished_by_the_next_start(tmp_path: Path) -> None:
    """SIGKILL at lines all over the cycle: same knowledge, same buffer, each promotion once, one report."""
    (unharmed,) = _killed(_fresh(tmp_path, "whole"), [0])
    lines = unharmed["lines"]
    assert isinstance(lines, int)
    assert lines > 500
    for harmed in _killed(_fresh(tmp_path, "short"), [1 + number * lines // 12 for number in range(12)]):
        assert harmed["ended"] is False
        _check(unharmed, harmed)


@pytest.mark.torture
def test_a_cycle_killed_at_every_line_is_finished_by_the_next_start(tmp_path: Path) -> None:
    """The same at every single line of the cycle, of its store and of the file's writer."""
    (unharmed,) = _killed(_fresh(tmp_path, "whole"), [0])
    lines = unharmed["lines"]
    assert isinstance(lines, int)
    for harmed in _killed(_fresh(tmp_path, "every"), range(1, lines)):
        _check(unharmed, harmed)


def _fresh(parent: Path, name: str) -> Path:
    place = parent / name
    place.mkdir()
    return place
