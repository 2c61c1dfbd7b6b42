"""The patrol routine: what HEARTBEAT.md may say, and that an item costs a model nothing until it is due."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from engines import open_books
from hypothesis import given, settings
from hypothesis import strategies as st

from artoo.agents.heartbeat.duties import Done
from artoo.agents.patrol import conditions
from artoo.agents.patrol.clock_times import At
from artoo.agents.patrol.conditions import (
    FilesChanged,
    FilesThere,
    Holds,
    Looking,
    NewMail,
    TasksPending,
    When,
    files_matching,
    mark_of,
)
from artoo.agents.patrol.parser import (
    MOST_ITEMS,
    Every,
    parse_patrol,
    patrol_problems,
    read_patrol,
)
from artoo.agents.patrol.patrol import Patrol, PatrolRequest
from artoo.agents.patrol.store import MOST_REMEMBERED, ItemState, PatrolStore, script_problems
from artoo.agents.storage.database import Database
from artoo.contracts.agents import PatrolRefused, Recorded
from artoo.contracts.criteria import CommandSucceeds, FileMatches
from artoo.contracts.errors import ToolError
from artoo.testing.clock import FakeClock

HALF_HOUR = Every(timedelta(minutes=30))


@pytest.mark.parametrize(
    ("text", "request_", "every", "when"),
    [
        ("- every: 30m Look at the disk.", "Look at the disk.", HALF_HOUR, None),
        ("- every: 30m — Look at `a/*.csv` (all)", "Look at `a/*.csv` (all)", HALF_HOUR, None),
        ("* Look at the disk.\n  every: 30m", "Look at the disk.", HALF_HOUR, None),
        ("1. Look at the disk (every: 30m)", "Look at the disk", HALF_HOUR, None),
        ("- Look at the disk\n  - every: 30m", "Look at the disk", HALF_HOUR, None),
        ("- [ ] every: 30m Look", "Look", HALF_HOUR, None),
        ("- 检查报告 every: 30m", "检查报告", HALF_HOUR, None),
        ("- Sum up.\n  when: file_exists reports/*.csv", "Sum up.", None, FilesThere("reports/*.csv")),
        ('- when: file_changed "in box.txt" Sort it.', "Sort it.", None, FilesChanged("in box.txt")),
        ("- when: mail Tell me.", "Tell me.", None, NewMail()),
        ("- when: tasks pending Say so.", "Say so.", None, TasksPending()),
        (
            "- Look.\n  when: file_matches log.txt ERROR|WARN",
            "Look.",
            None,
            Holds(FileMatches(path="log.txt", regex="ERROR|WARN")),
        ),
        (
            "- Pull.\n  when: command_succeeds `git fetch --dry-run`",
            "Pull.",
            None,
            Holds(CommandSucceeds(command="git fetch --dry-run")),
        ),
        ("- Both. every: 30m when: mail", "Both.", HALF_HOUR, NewMail()),
        ("- Both.\n  every: 30m\n  when: mail", "Both.", HALF_HOUR, NewMail()),
    ],
)
def test_the_ways_to_write_an_item(text: str, request_: str, every: Every | None, when: When | None) -> None:
    """A condition may lead, follow, stand on a line of its own or in a nested list."""
    read = parse_patrol(f"# Patrol\n\nWhat to do:\n\n{text}\n")
    assert not read.problems
    (item,) = read.items
    assert (item.request, item.every, item.when, item.line) == (request_, every, when, 5)


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("# A\n\n- look at it", 3, "an item needs a condition"),
        ("- every: 5s look", 1, "is no time"),
        ("- every: often look", 1, "is no time"),
        ("- every: 0m look", 1, "from 1m to 366d"),
        ("- every: 900d look", 1, "from 1m to 366d"),
        ("- when: sunny look", 1, "is no check. Known: file_exists"),
        ("- when: output_is_json look", 1, "judges a task's result"),
        ("- when: file_exists", 1, "needs a path"),
        ("- look\n  when: file_exists a/**/b", 1, "walk a whole tree"),
        ("- look\n  when: file_matches log.txt", 1, "needs a regular expression"),
        ("- every: 1d", 1, "must say what to do"),
        ("- every: 1d every: 2d look", 1, "two `every:`"),
        ("- look\n  every: 1d\n  every: 2d", 1, "two `every:`"),
        ("- look\n  when: mail\n  when: mail", 1, "two `when:`"),
        ("look every: 1d", 1, "only list items are patrolled"),
        ("- every: 1d look\n- every: 1d look", 2, "the same item"),
        ("- every: 1d " + "x" * 5_000, 1, "at most 4000 characters"),
    ],
)
def test_an_item_that_cannot_be_used_is_refused_with_its_line(text: str, line: int, problem: str) -> None:
    """What is wrong, where, and what can stand there instead."""
    read = parse_patrol(text)
    assert [(each.line, problem in each.text) for each in read.problems] == [(line, True)]


@pytest.mark.parametrize(
    "text", ["", "\n\n", "# Patrol\n", "<!-- - every: 1d look -->\n", "- [x] every: 1d look", "- "]
)
def test_nothing_to_do_is_no_work(text: str) -> None:
    """An empty file, a file of comments, an item that is switched off."""
    assert parse_patrol(text) == parse_patrol("")


def test_files_that_are_no_routine_are_refused(tmp_path: Path) -> None:
    """Too large, not text, no file: said in words, with the file's name, before anything starts."""
    path = tmp_path / "HEARTBEAT.md"
    assert read_patrol(path) == parse_patrol("")
    path.write_bytes(b"\xff\xfe\x00")
    assert "UTF-8" in read_patrol(path).problems[0].text
    path.write_bytes(b"- every: 1d x\n" * 10_000)
    assert "larger than" in read_patrol(path).problems[0].text
    path.write_text("".join(f"- every: 1d look {number}\n" for number in range(MOST_ITEMS + 1)))
    assert "more than 100" in read_patrol(path).problems[0].text
    assert patrol_problems(path) == (f"{path}:101: there are more than 100 items: remove some",)
    path.unlink()
    path.mkdir()
    assert "cannot be read" in read_patrol(path).problems[0].text


def test_a_defect_of_the_reader_is_no_fault_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is raised, and not told as a problem of the routine."""
    monkeypatch.setattr("artoo.agents.patrol.parser.parse_patrol", int)
    with pytest.raises(ValueError, match="invalid literal"):
        read_patrol(tmp_path / "HEARTBEAT.md")


def test_the_example_of_the_documentation_can_be_used() -> None:
    """What docs/heartbeat.md shows is a routine without problems: three items, one of them with both conditions."""
    page = (Path(__file__).parents[2] / "docs" / "heartbeat.md").read_text()
    read = parse_patrol(page.partition("```markdown\n")[2].partition("```")[0])
    assert not read.problems
    assert [tuple(map(bool, (item.every, item.at, item.when))) for item in read.items] == [
        (True, False, False),
        (False, True, False),
        (False, False, True),
        (True, False, True),
    ]


@settings(deadline=None, max_examples=200)
@given(st.text(alphabet="- *[]x()every:at:when mail1dm0\n`#>\t", max_size=200))
def test_no_text_breaks_the_reader(text: str) -> None:
    """Whatever stands in the file, it is read, and each item has a condition and a request."""
    for item in parse_patrol(text).items:
        assert item.request
        assert item.every or item.at or item.when


@dataclass
class Round:
    """A patrol over a real store, with everything that it submits and tells kept."""

    clock: FakeClock
    database: Database
    home: Path
    requests: list[PatrolRequest] = field(default_factory=list[PatrolRequest])
    told: list[Recorded] = field(default_factory=list[Recorded])
    runs: int = 0
    answer: Done | Exception = field(default_factory=lambda: Done(items=1, llm_calls=2))
    checks: list[bool] = field(default_factory=list[bool])
    meanwhile: Callable[[], None] = lambda: None

    def write(self, text: str) -> None:
        (self.home / "HEARTBEAT.md").write_text(text)

    def patrol(self) -> Patrol:
        """A patrol as a fresh process would make it."""

        async def submit(request: PatrolRequest) -> Done:
            self.requests.append(request)
            self.meanwhile()
            if isinstance(self.answer, Exception):
                raise self.answer
            return self.answer

        async def tell(record: Recorded) -> None:
            self.told.append(record)

        async def holds(check: FileMatches | CommandSucceeds) -> bool:
            return self.checks.pop(0)

        sights = Looking("ada", self.home, self.database, holds)
        store = PatrolStore(self.database, "ada")
        paths = (self.home / "HEARTBEAT.md", self.home / "all.md")
        return Patrol("ada", paths, store, sights, self.clock, submit=submit, tell=tell)

    def scripted(self, text: str) -> Patrol:
        """A patrol whose routine is a script, which is run for real."""
        (self.home / "patrol.sh").write_text(text)
        patrol = self.patrol()
        paths = (self.home / "patrol.sh",)
        store = PatrolStore(self.database, "ada")
        return Patrol(
            *("ada", paths, store, patrol.sights, self.clock), submit=patrol.submit, tell=patrol.tell, run=self._run
        )

    async def _run(self, command: str) -> tuple[int | None, str]:
        self.runs += 1
        process = await asyncio.create_subprocess_exec(
            *("bash", "-c", command),
            cwd=self.home,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        printed, _ = await process.communicate()
        return process.returncode, printed.decode()

    async def beat(self, patrol: Patrol, seconds: float = 120) -> list[str]:
        """One pulse; what was submitted in it."""
        self.clock.advance(seconds)
        before = len(self.requests)
        while await patrol.due() is not None:
            await patrol.do()
        return [request.text for request in self.requests[before:]]


@pytest.fixture
async def round_(tmp_path: Path) -> AsyncGenerator[Round]:
    clock = FakeClock()
    async with await open_books(tmp_path, clock) as database:
        yield Round(clock, database, tmp_path)


@pytest.mark.usefixtures("engine")
async def test_every_is_kept_across_pulses_and_restarts(round_: Round) -> None:
    """`every: 30m` runs at first sight, then once in 30 minutes, however many pulses and processes look."""
    round_.write("- every: 30m look")
    patrol = round_.patrol()
    ran = [await round_.beat(patrol) for _ in range(31)]
    assert [number for number, done in enumerate(ran) if done] == [0, 15, 30]
    assert await round_.beat(round_.patrol()) == []


@pytest.mark.parametrize(
    ("written", "cron", "zone"),
    [
        ("9:00", "0 9 * * *", None),
        ("Mon 9:05", "5 9 * * 1", None),
        ("tue, Thursday 7:15", "15 7 * * 2,4", None),
        ("Mon-Fri 18:30 Europe/Berlin", "30 18 * * 1-5", "Europe/Berlin"),
        ('"weekends 10:00 UTC"', "0 10 * * 0,6", "UTC"),
        ("*/15 8-17 * * 1-5", "*/15 8-17 * * 1-5", None),
    ],
)
def test_clock_times_are_read(written: str, cron: str, zone: str | None) -> None:
    (item,) = parse_patrol(f"- at: {written} Write it.").items
    assert (item.request, item.at) == ("Write it.", At(cron, zone))


@pytest.mark.parametrize("written", ["25:00", "Mun 9:00", "9:00 Mars/Base", "61 9 * * *", "0 0 30 2 *", "soon"])
def test_a_clock_time_that_cannot_be_read_is_refused(written: str) -> None:
    found = parse_patrol(f"- at: {written} Write it.")
    assert not found.items and found.problems[0].line == 1


def test_a_clock_change_neither_repeats_nor_skips_a_day() -> None:
    """On 29 March 2026 02:30 does not exist in Berlin; on 25 October it comes twice."""
    at, days = At("30 2 * * *", "Europe/Berlin"), list[str]()
    moment = datetime(2026, 3, 27, 12, tzinfo=UTC)
    for _ in range(3):
        moment = at.next_after(moment)
        days.append(moment.isoformat())
    assert [day[:10] for day in days] == ["2026-03-28", "2026-03-29", "2026-03-30"]
    autumn = at.next_after(datetime(2026, 10, 24, 12, tzinfo=UTC))
    assert at.next_after(autumn).date().isoformat() == "2026-10-26"


async def test_an_item_with_a_clock_time_is_done_once_at_its_time(round_: Round) -> None:
    """The first look notes the moment; after an absence over several times it is done once."""
    round_.write("- at: 9:00 UTC Write the report.")
    patrol = round_.patrol()
    days = [await round_.beat(patrol, seconds) for seconds in (120, 86_400, 120, 3 * 86_400, 120)]
    assert [len(day) for day in days] == [0, 1, 0, 1, 0]
    assert await round_.beat(round_.patrol()) == []


async def test_a_routine_costs_no_request_while_nothing_is_due(round_: Round) -> None:
    """A full file is no request a pulse: a day of pulses over four quiet items submits nothing."""
    round_.write(
        "- a\n  when: file_exists out/*.csv\n- b\n  when: file_changed in.txt\n- c when: mail\n"
        "- d\n  when: tasks pending"
    )
    patrol = round_.patrol()
    assert [await round_.beat(patrol) for _ in range(720)] == [[]] * 720


async def test_a_file_that_is_there_is_one_request_until_it_differs(round_: Round) -> None:
    """`file_exists` reacts to what is new, not at every pulse to what is old."""
    round_.write("- sum up\n  when: file_exists out/*.csv")
    patrol = round_.patrol()
    assert await round_.beat(patrol) == []
    (round_.home / "out").mkdir()
    (round_.home / "out" / "a.csv").write_text("1")
    assert [await round_.beat(patrol) for _ in range(3)] == [["sum up"], [], []]
    (round_.home / "out" / "b.csv").write_text("1")
    assert [await round_.beat(patrol) for _ in range(2)] == [["sum up"], []]
    (round_.home / "out" / "a.csv").unlink()
    (round_.home / "out" / "b.csv").unlink()
    assert await round_.beat(patrol) == []
    (round_.home / "out" / "a.csv").write_text("1")
    assert await round_.beat(patrol) == ["sum up"]


async def test_a_changed_file_is_seen_and_its_first_look_is_not_a_change(round_: Round) -> None:
    """Contents, appearing and disappearing are changes; being there at the start is none."""
    path = round_.home / "in.txt"
    path.write_text("1")
    round_.write("- sort\n  when: file_changed in.txt")
    patrol = round_.patrol()
    assert await round_.beat(patrol) == []
    os.utime(path, (1, 1))
    assert [await round_.beat(patrol), await round_.beat(patrol)] == [["sort"], []]
    path.unlink()
    assert await round_.beat(patrol) == ["sort"]


@pytest.mark.parametrize("condition", ["file_exists", "file_changed"])
async def test_an_item_does_not_make_itself_due(round_: Round, condition: str) -> None:
    """What its own run wrote is nothing new to it; what somebody else put there during the run is."""
    new = round_.home / "in.txt"
    round_.write(f"- sum up\n  when: {condition} *.txt")
    patrol = round_.patrol()
    await round_.beat(patrol)
    new.write_text("1")
    summary = round_.home / "summary.txt"

    def run(*others: Path) -> None:
        summary.write_text(f"of {len(round_.requests)}" + "." * len(round_.requests))
        for other in others:
            other.write_text("put there meanwhile")

    round_.answer = Done(items=1, made=(str(summary),))
    round_.meanwhile = run
    assert [await round_.beat(patrol), await round_.beat(patrol)] == [["sum up"], []]
    new.write_text("another")
    round_.meanwhile = lambda: run(round_.home / "late.txt")
    assert await round_.beat(patrol) == ["sum up"]
    round_.meanwhile = run
    assert [await round_.beat(patrol), await round_.beat(patrol)] == [["sum up"], []]


@pytest.mark.parametrize("condition", ["file_exists", "file_changed"])
async def test_an_item_that_clears_its_files_away_is_done(round_: Round, condition: str) -> None:
    """That the last one is gone is what its own run made; the next file that comes is new."""
    path = round_.home / "in.txt"
    round_.write(f"- sort\n  when: {condition} *.txt")
    patrol = round_.patrol()
    await round_.beat(patrol)
    round_.answer, round_.meanwhile = Done(items=1, made=(str(path),)), path.unlink
    for text in ("1", "22"):
        path.write_text(text)
        assert [await round_.beat(patrol) for _ in range(3)] == [["sort"], [], []]


async def test_a_check_fires_when_it_begins_to_hold(round_: Round) -> None:
    """True, true, false, true is two requests."""
    round_.write("- pull\n  when: command_succeeds git fetch")
    round_.checks = [False, True, True, True, True, False, True, True]
    patrol = round_.patrol()
    ran = [bool(await round_.beat(patrol)) for _ in range(7)]
    assert ran.count(True) == 2


async def test_both_conditions_must_hold(round_: Round) -> None:
    """`every:` with `when:` bounds how often a change is reacted to, and forgets none."""
    path = round_.home / "in.txt"
    path.write_text("1")
    round_.write("- sort\n  every: 1h\n  when: file_changed in.txt")
    patrol = round_.patrol()
    await round_.beat(patrol)
    ran = 0
    for number in range(60):
        path.write_text("x" * number)
        ran += len(await round_.beat(patrol))
    assert ran == 2
    assert await round_.beat(patrol, 3_600) == ["sort"]


async def test_mail_and_tasks_are_seen_once_each(round_: Round) -> None:
    """A letter or a task for the agent is one request; one for somebody else is none."""

    async def letter(identifier: str, recipient: str) -> None:
        await round_.database.write(
            lambda writing: writing.run(
                "INSERT INTO mails (id, sender, recipient, text, priority, requires_reply, sent_at_us, partition,"
                " queued_us) VALUES (?, 'operator', ?, 'hi', 'standard', FALSE, 1, 'archive', 1)",
                (identifier, recipient),
            )
        )

    round_.write("- tell me\n  when: mail")
    round_.answer = Done(items=1, made=(str(round_.home / "made.txt"),))  # no letter
    patrol = round_.patrol()
    await letter("1", "ada")
    assert await round_.beat(patrol) == []
    await letter("2", "ada")
    assert [await round_.beat(patrol), await round_.beat(patrol)] == [["tell me"], []]
    await letter("3", "grace")
    assert await round_.beat(patrol) == []


async def test_an_item_whose_process_died_is_submitted_again_under_its_key(round_: Round) -> None:
    """Neither skipped silently nor a second request: the key is the same until it was finished."""
    round_.write("- every: 1d look")
    round_.answer = ToolError("killed")
    patrol = round_.patrol()
    round_.clock.advance(120)
    assert await patrol.due()
    with pytest.raises(ToolError):
        await patrol.do()
    round_.answer = Done(items=1)
    assert await round_.beat(round_.patrol()) == ["look"]
    assert len({request.key for request in round_.requests}) == 1
    assert await round_.beat(round_.patrol()) == []


async def test_what_was_switched_off_before_its_turn_is_not_done(round_: Round) -> None:
    """An item that was found due waits for its turn; the routine counts as it is then."""
    round_.write("- every: 1d one\n- every: 1d two\n- every: 1d three")
    patrol = round_.patrol()
    round_.clock.advance(120)
    assert await patrol.due()
    await patrol.do()
    round_.write("- every: 1d one\n- [x] every: 1d two")
    assert await patrol.due() is None
    assert [request.text for request in round_.requests] == ["one"]


async def test_the_beginning_of_a_key_tells_runs_of_one_item_apart(round_: Round) -> None:
    """A letter is named by the beginning of its id: the same for each day's report, it would name none."""
    round_.write("- every: 1h look")
    patrol = round_.patrol()
    for _ in range(3):
        await round_.beat(patrol, 3_700)
    assert len({request.key[:20] for request in round_.requests}) == 3


async def test_a_throttled_item_stays_open(round_: Round) -> None:
    """Backing off does not use up the day's turn."""
    round_.write("- every: 1d look")
    round_.answer = Done(throttled="429")
    patrol = round_.patrol()
    round_.clock.advance(120)
    assert await patrol.due()
    await patrol.do()
    round_.answer = Done(items=1)
    assert await round_.beat(patrol) == ["look"]
    assert len({request.key for request in round_.requests}) == 1


async def test_a_clock_that_was_set_back_neither_repeats_nor_silences_an_item(round_: Round) -> None:
    """The item waits one interval from the new time."""
    round_.write("- every: 1h look")
    patrol = round_.patrol()
    await round_.beat(patrol)
    round_.clock.jump(-timedelta(days=3).total_seconds())
    ran = [await round_.beat(patrol) for _ in range(60)]
    assert sum(map(len, ran)) == 1


async def test_an_edited_routine_is_read_again_and_its_errors_are_told_once(round_: Round) -> None:
    """A bad line is refused on the stream with file and line; the good ones go on."""
    round_.write("- every: 1d look")
    patrol = round_.patrol()
    assert await round_.beat(patrol) == ["look"]
    round_.write("- every: 1d look\n- look harder\n- every: 1d smile")
    assert await round_.beat(patrol) == ["smile"]
    assert await round_.beat(patrol) == []
    assert [(each.line, each.agent) for each in round_.told if isinstance(each, PatrolRefused)] == [(2, "ada")]


async def test_a_file_that_is_empty_for_a_moment_runs_nothing_again(round_: Round) -> None:
    """An editor that saves in two steps does not make the whole routine due."""
    round_.write("- every: 1d look")
    patrol = round_.patrol()
    assert await round_.beat(patrol) == ["look"]
    round_.write("")
    assert await round_.beat(patrol) == []
    round_.write("- every: 1d look")
    assert await round_.beat(patrol) == []


async def test_states_of_items_that_are_gone_are_bounded(round_: Round) -> None:
    """The oldest go first, never those of the routine."""
    store = PatrolStore(round_.database, "ada")
    for number in range(MOST_REMEMBERED + 5):
        round_.clock.advance(1)
        await store.put(f"item{number}", ItemState(round_.clock.now()))
    await store.forget_oldest(["item0"])
    left = await store.states()
    assert len(left) == MOST_REMEMBERED + 1
    assert "item0" in left
    assert "item1" not in left


async def test_the_homes_routine_is_patrolled_too(round_: Round) -> None:
    """An item of the common routine is submitted once, with the place where it stands."""
    round_.write("- every: 1d look")
    (round_.home / "all.md").write_text("\n- every: 1d look\n- every: 1d greet")
    assert await round_.beat(round_.patrol()) == ["look", "greet"]
    assert round_.requests[1].source == f"{round_.home / 'all.md'}:3"


async def test_a_storm_of_looks_is_no_storm_of_checks(round_: Round) -> None:
    """Within 30 seconds conditions are looked at once."""
    round_.write("- pull\n  when: command_succeeds git fetch")
    round_.checks = [False]
    patrol = round_.patrol()
    for _ in range(20):
        round_.clock.advance(1)
        assert await patrol.due() is None


def test_marks_tell_files_apart(tmp_path: Path) -> None:
    """Names, sizes and times make the mark; nothing there is no mark."""
    assert mark_of(files_matching(tmp_path, "*.csv")) == ""
    (tmp_path / "a.csv").write_text("1")
    one = mark_of(files_matching(tmp_path, "*.csv"))
    (tmp_path / "b.csv").write_text("1")
    assert len({"", one, mark_of(files_matching(tmp_path, "*.csv"))}) == 3
    assert mark_of(files_matching(tmp_path, str(tmp_path / "a.csv"))) == one


def test_the_order_of_a_directory_does_not_change_the_mark_of_too_many_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit takes the first names, whatever the order in which the directory lists its files."""
    monkeypatch.setattr(conditions, "MOST_FILES", 2)
    names = [str(tmp_path / name) for name in ("a.csv", "b.csv", "c.csv")]
    for name in names:
        Path(name).write_text("1", encoding="utf-8")
    for listed in (names, names[::-1]):

        def listing(_: str, listed: list[str] = listed) -> Iterator[str]:
            return iter(listed)

        monkeypatch.setattr(conditions.glob, "iglob", listing)
        assert list(files_matching(tmp_path, "*.csv")) == names[:2]


def test_a_directory_may_have_the_signs_of_a_pattern_in_its_name(tmp_path: Path) -> None:
    """Only what the person wrote is a pattern: not where their home or project lies."""
    root = tmp_path / "[2026] data*"
    root.mkdir()
    (root / "a.csv").write_text("1")
    assert mark_of(files_matching(root, "*.csv")) != ""


def test_an_items_key_follows_its_words_not_its_place() -> None:
    """Moving an item does not run it again; editing it makes it a new one."""
    (first,), (second,) = parse_patrol("- every: 1d look").items, parse_patrol("# A\n\n- every: 1d look").items
    assert first.key == second.key
    assert first.key != replace(first, every=HALF_HOUR).key


@pytest.mark.parametrize("interpreter", ["#!/usr/bin/env python3\nprint(open('todo').read())", "cat todo"])
async def test_a_routine_may_be_a_script(round_: Round, interpreter: str) -> None:
    """What a script prints is done, once for as long as it prints it; silence is no work, and asks nobody."""
    (round_.home / "todo").write_text("")
    patrol = round_.scripted(interpreter)
    assert await round_.beat(patrol) == []
    (round_.home / "todo").write_text("sort the letters\n\nwater the plants\n")
    assert await round_.beat(patrol) == ["sort the letters", "water the plants"]
    assert await round_.beat(patrol) == []
    assert await round_.beat(round_.scripted(interpreter)) == [], "nor after a restart"
    (round_.home / "todo").write_text("water the plants\n")
    assert await round_.beat(patrol) == []
    (round_.home / "todo").write_text("sort the letters\nwater the plants\n")
    assert await round_.beat(patrol) == ["sort the letters"]
    assert round_.runs == 6


async def test_a_script_that_fails_is_told_once_and_does_nothing(round_: Round) -> None:
    """Its exit code and last words go to the operator; what it printed before does not come again for that."""
    (round_.home / "todo").write_text("sort the letters\n")
    patrol = round_.scripted("cat todo")
    assert await round_.beat(patrol) == ["sort the letters"]
    (round_.home / "todo").unlink()
    assert [await round_.beat(patrol) for _ in range(3)] == [[], [], []]
    (told,) = [record for record in round_.told if isinstance(record, PatrolRefused)]
    assert "exit code 1" in told.problem and "todo" in told.problem
    (round_.home / "todo").write_text("sort the letters\n")
    assert await round_.beat(patrol) == []


async def test_a_script_that_fails_is_found_by_who_looks_later(round_: Round) -> None:
    """Until it works again, and by a process that began anew, too."""
    source, team = str(round_.home / "patrol.sh"), ("ada", "bob")

    async def problems() -> dict[str, tuple[str, ...]]:
        return await script_problems(round_.database, source, team)

    await round_.beat(round_.scripted("echo no such place; exit 3"))
    ((problem, whose),) = (await problems()).items()
    assert "exit code 3" in problem and "no such place" in problem and whose == ("ada",)
    await round_.beat(round_.scripted("exit 4"))
    (problem,) = await problems()
    assert "exit code 4" in problem
    await round_.beat(round_.scripted("true"))
    assert await problems() == {}


async def test_a_script_is_bounded(round_: Round) -> None:
    """Twenty requests at a time; the rest is told, not done."""
    patrol = round_.scripted("seq 1 30")
    assert len(await round_.beat(patrol)) == 20
    (told,) = [record for record in round_.told if isinstance(record, PatrolRefused)]
    assert "10 lines more" in told.problem
