"""What the pages show, over the real server and real logs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from web_scenes import BEGAN, REQUEST, TASK, Writer, opening, planned, whole
from web_server import page_of

from artoo.contracts import codec
from artoo.contracts.envelope import Envelope
from artoo.contracts.execution import CriterionJudged, CriterionVerdict, DecidedBy, SubTaskOutcome
from artoo.contracts.plan import SubTask
from artoo.contracts.request import UserRequest
from artoo.contracts.roles import Role
from artoo.testing import ScriptedModel
from artoo.web.rows import one_line, row_of


async def test_an_empty_home_shows_how_to_begin(tmp_path: Path) -> None:
    """Every page of it says something."""
    async with page_of(tmp_path) as page:
        for path in ("/", "/team", "/memory", "/audit"):
            status, text = await page.get(path)
            assert status == 200, text
            assert "<main" in text
        assert 'artoo "how many Python files' in (await page.get("/"))[1]


async def test_what_is_no_utf_8_has_a_page(tmp_path: Path) -> None:
    """A project's name, or half an emoji in an older log: one such task took the page from everybody."""
    writer = Writer(tmp_path)
    opened, request, *more = opening()
    role, asked = request
    assert isinstance(asked, UserRequest)
    named = asked.model_copy(update={"text": "look at caf\udce9 \ud83d", "project": "/home/me/caf\udce9"})
    writer.say([opened, (role, named), *more])
    async with page_of(tmp_path, project=tmp_path / os.fsdecode(b"caf\xe9")) as page:
        assert 'caf\\xe9" spellcheck' in (await page.get("/"))[1]
        for part in ("", "?part", "/difference", "/events/1", "/rows?first=0&count=9"):
            status, text = await page.get(f"/tasks/{TASK}{part}")
            assert status == 200, (part, text)
        async with page.client.get(f"{page.address}/tasks/{TASK}/stream?after=-1") as events:
            assert b"event: rows\n" in [await events.content.readline() for _ in range(4)]


async def test_places_and_rows_that_there_are_not(tmp_path: Path) -> None:
    """A refusal that names it, and no rows: not an error of the server's."""
    writer = Writer(tmp_path)
    writer.say(whole())
    async with page_of(tmp_path, model=ScriptedModel({}, leftover=True)) as page:
        for named in ("~nobody-has-this-name/x", "a\0b"):
            status, text = await page.post("/tasks", ("text", "hello"), ("project", named))
            assert status == 400 and "is no place for a task" in text, text
        for first in (10**20, -(10**20)):
            status, text = await page.get(f"/tasks/{TASK}/rows?first={first}&count={10**20}")
            assert status == 200, text


async def test_a_task_shows_why_the_next_round_differs(tmp_path: Path) -> None:
    """The directive, what is blocked, the numbers in words, and the answer."""
    writer = Writer(tmp_path)
    writer.say(whole())
    async with page_of(tmp_path) as page:
        status, text = await page.get(f"/tasks/{TASK}/how")
        assert status == 200, text
        for said in (
            "wrong way: another approach",
            "Both failures come from matching lines of text",
            '<code class="struck">shell:grep</code>',
            "not by the environment: 2 of 2.",
            "The loss fell by 0.52",
        ):
            assert said in text, said
        assert "src/app.py imports the most" in (await page.get(f"/tasks/{TASK}"))[1]
        assert REQUEST in (await page.get("/"))[1]


async def test_the_other_language(tmp_path: Path) -> None:
    """By what the browser accepts, and by choice."""
    Writer(tmp_path).say(whole())
    async with page_of(tmp_path) as page:
        _, text = await page.get(f"/tasks/{TASK}/how", **{"accept-language": "zh-CN,zh;q=0.9,en;q=0.8"})
        assert '<html lang="zh">' in text and "控制" not in REQUEST and "这一轮为何不同" in text
        _, text = await page.post("/language", ("language", "zh"), ("back", "/team"))
        assert '<html lang="zh">' in text and "任务板" in text


async def test_every_event_can_be_read_whole(tmp_path: Path) -> None:
    """Rows of both views, and one event with its prompt; beyond the end there is nothing."""
    writer = Writer(tmp_path)
    writer.say(whole())
    async with page_of(tmp_path) as page:
        await page.get(f"/tasks/{TASK}")
        async with page.client.get(f"{page.address}/tasks/{TASK}/rows?view=all&first=0&count=400") as answer:
            everything = await answer.json()
        async with page.client.get(f"{page.address}/tasks/{TASK}/rows?view=short&first=0&count=400") as answer:
            short = await answer.json()
        assert [row["n"] for row in everything["rows"]] == list(range(writer.count))
        hidden = sum(row.get("fold", 0) for row in short["rows"])
        assert hidden > 0 and hidden + sum("fold" not in row for row in short["rows"]) == writer.count
        assert "The request: …" in (await page.get(f"/tasks/{TASK}/events/2"))[1]
        assert (await page.get(f"/tasks/{TASK}/events/{writer.count}"))[0] == 404
        assert (await page.get("/tasks/nothing"))[0] == 404


async def test_what_if(tmp_path: Path) -> None:
    """A wrong number is named, not swallowed."""
    Writer(tmp_path).say(whole())
    async with page_of(tmp_path) as page:
        status, text = await page.get(f"/tasks/{TASK}/what-if?delta=.6")
        assert status == 200 and "What if" in text, text
        assert (await page.get(f"/tasks/{TASK}/what-if?delta=banana"))[0] == 400


@pytest.mark.parametrize(("accepted", "word"), [("en", "open"), ("zh-CN", "未定")])
async def test_a_criterion_that_nobody_decided_is_called_open(tmp_path: Path, accepted: str, word: str) -> None:
    """In the task as in its events; nobody is no word for what is open."""
    open_one = CriterionVerdict(
        criterion="it reads well", verdict="open", decided_by=DecidedBy.NOBODY, evidence="no judge"
    )
    writer = Writer(tmp_path)
    writer.say(opening())
    writer.say(planned(1, ["write it"]))
    judged = CriterionJudged(subtask_id="1.1", verdict=open_one)
    outcome = SubTaskOutcome(
        subtask_id="1.1", parent_task_id=TASK, status="matched", intent="write it", criteria_verdicts=(open_one,)
    )
    begun = SubTask(subtask_id="1.1", parent_task_id=TASK, sequence=1, intent="write it")
    writer.say([(Role.DISPATCHER, begun), (Role.AGENT_VALIDATOR, judged), (Role.AGENT_VALIDATOR, outcome)])
    async with page_of(tmp_path) as page:
        text = (await page.get(f"/tasks/{TASK}/how", **{"accept-language": accepted}))[1]
        assert f'<li class="criterion open">it reads well <span class="faint">{word}: no judge</span>' in text
        assert "nobody: " not in text
    row = row_of(1, codec.encode(Envelope("id", Role.AGENT_VALIDATOR, TASK, BEGAN, judged, "1.1")))
    assert (row.text, row.tone) == ("open: it reads well (no judge)", "warn")
    assert one_line(f"a{' ' * 9_000}b") == "a…"


async def test_no_page_shows_what_hides_or_turns_a_line(tmp_path: Path) -> None:
    """Of whatever a template says: request, answer, question."""
    Writer(tmp_path).say(opening("a\u202eb\x1b[2J\x9b\u2028c\U000e0041"))
    async with page_of(tmp_path) as page:
        for path in ("/", f"/tasks/{TASK}"):
            text = (await page.get(path))[1]
            assert not set(text) & set("\u202e\x1b\x9b\u2028\U000e0041")
            assert "a\\u202eb\\x1b[2J" in text
