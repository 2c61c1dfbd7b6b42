"""The team's page: what waits for the operator is settled there, bound to what was shown."""

from __future__ import annotations

import html
import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "team"))
from team_world import crew, exists, plan, write
from web_home import config_of, hire, with_team
from web_server import Page, hidden, page_of, site_at

from artoo.contracts.agents import OPERATOR, BoardState, TrustLevel
from artoo.team.office import open_office
from artoo.testing import Asked
from artoo.testing.replies import Scripted
from artoo.web.stream import signatures

ALONE = {"ada": TrustLevel.PROBATION}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's home with a project that holds one file."""
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "a.txt").write_text("mine\n")
    return tmp_path.resolve()


def writes(asked: Asked) -> Scripted:
    """A model that writes that file anew."""
    match asked.contract:
        case "Plan":
            return plan("write a.txt", exists("a.txt"))
        case "ExecutorStep":
            return write("a.txt", "theirs\n")
        case _:
            return {"next_moves": []}


async def review(page: Page, task: str, verdict: str, text: str, **changed: str) -> tuple[int, str]:
    """Sends the review's form as it stands in `text`, except what is changed."""
    fields = {name: hidden(text, name) for name in ("submission", "digest")} | changed
    return await page.post(f"/team/tasks/{task}/review", *fields.items(), ("verdict", verdict))


async def test_a_submission_is_approved_in_the_page(place: Path) -> None:
    """The diff and why it needs a yes are shown; a yes to anything else changes nothing; then it is done."""
    file = place / "project" / "a.txt"
    async with crew(place, writes, trust=ALONE) as team, page_of(place / "home") as page:
        task = await team.add("write a.txt anew", "ada")
        await team.until(task, BoardState.REVIEW)
        assert "no agent that may review it is there" in (await page.get("/"))[1]
        status, text = await page.get(f"/team/tasks/{task.id}")
        assert status == 200 and "+theirs" in text and "-mine" in text and "Needs your approval" in text, text
        assert "a.txt exists" in text and "what is there now is overwritten" in text
        status, said = await review(page, task.id, "approve", text, digest="0" * 64)
        assert status == 400 and "look again" in html.unescape(said) and file.read_text() == "mine\n"
        for number in ("7", "9" * 5_000, "²", ""):
            status, said = await review(page, task.id, "approve", text, submission=number)
            assert status == 400 and file.read_text() == "mine\n", number
        status, said = await review(page, task.id, "approve", text)
        assert status == 200 and file.read_text() == "theirs\n", said
        status, said = await page.post(f"/team/tasks/{task.id}/move", ("state", "archived"))
        assert status == 200 and "completed → archived (you)" in said
        assert "no agent that may review it is there" not in (await page.get("/"))[1]


async def test_what_the_team_made_leads_to_its_task(place: Path) -> None:
    """Once on the first page, by a link that is there, also when an agent may review it."""
    async with crew(place, writes, trust=ALONE) as team, page_of(place / "home") as page:
        task = await team.add("write a.txt anew", "ada")
        await team.until(task, BoardState.REVIEW)
        _, text = await page.get("/")
        assert text.count(task.id) == 2 and f"/tasks/{task.id}/difference" not in text  # the row, and its link
        await hire(team.office, "cyd", TrustLevel.SENIOR)
        _, text = await page.get("/")
        (link,) = re.findall(rf'href="([^"]*{task.id}[^"]*)"', text)
        assert (await page.get(link))[0] == 200


async def test_a_rejection_needs_its_reasons(place: Path) -> None:
    """Without them it is refused; with them they are on the task, for whoever does it again."""
    async with crew(place, writes, trust=ALONE) as team, page_of(place / "home") as page:
        task = await team.add("write a.txt anew", "ada")
        await team.until(task, BoardState.REVIEW)
        _, text = await page.get(f"/team/tasks/{task.id}")
        status, said = await review(page, task.id, "reject", text)
        assert status == 400 and "say why" in said
        status, said = await review(page, task.id, "reject", text, why="in capitals, please")
        assert status == 200
        assert any("in capitals, please" in note for note in (await team.office.board.get(task.id)).notes)
        assert (place / "project" / "a.txt").read_text() == "mine\n"


async def test_the_board_has_four_columns_and_says_what_is_left_to_you(tmp_path: Path) -> None:
    """Each task is in its column with its state; the reason why it waits is there and on the first page."""
    made = await with_team(tmp_path, "Sort the invoices")
    async with page_of(tmp_path) as page:
        _, text = await page.get("/team")
        columns = dict(re.findall(r'data-state="(\w+)"(.*?)</section>', text, re.DOTALL))
        assert list(columns) == ["needs", "todo", "progress", "done"]
        places = {"blocked": "needs", "failed": "needs", "pending": "todo", "cancelled": "done"}
        for name, task in made.items():
            assert f"/team/tasks/{task.id}" in columns[places.get(name, "progress")], name
        assert columns["needs"].count("/team/tasks/") == 2
        assert "failed: let it be tried again, or cancel it" in columns["needs"]
        assert "blocked: release it, or cancel it" in columns["needs"]
        assert "probation" in text and '<i class="pulse missed">' in text and "worked" in text
        _, text = await page.get("/")
        assert made["failed"].id in text and made["blocked"].id in text and made["pending"].id not in text
        assert "letters to you that you have not read: 1" in text


@pytest.mark.parametrize(
    ("begun", "to", "then"),
    [("failed", "pending", "pending"), ("failed", "cancelled", "cancelled"), ("cancelled", "archived", "archived")],
)
async def test_what_waits_is_moved_by_hand(tmp_path: Path, begun: str, to: str, then: str) -> None:
    """Tried again, cancelled, archived: by the operator, with the reason on record."""
    made = await with_team(tmp_path, "Sort the invoices")
    async with page_of(tmp_path) as page:
        _, text = await page.get(f"/team/tasks/{made[begun].id}")
        assert f'name="state" value="{to}"' in text
        fields = (("state", to), ("why", "because I say so"))
        status, text = await page.post(f"/team/tasks/{made[begun].id}/move", *fields)
        assert status == 200, text
    async with open_office(config_of(tmp_path)) as office:
        assert (await office.board.get(made[begun].id)).state.value == then
        assert (await office.board.log(made[begun].id))[-1].actor == OPERATOR


async def test_a_blocked_task_goes_on_and_a_move_that_there_is_not_is_refused(tmp_path: Path) -> None:
    """Released, it may be taken again; a state that only a review or work leads to is no move."""
    made = await with_team(tmp_path, "Sort the invoices")
    async with page_of(tmp_path) as page:
        where = f"/team/tasks/{made['blocked'].id}"
        for state in ("completed", "failed", "banana"):
            assert (await page.post(f"{where}/move", ("state", state)))[0] == 400, state
        status, text = await page.post(f"{where}/move", ("state", "in_progress"), ("why", "the disk is back"))
        assert status == 200 and "released" in text and "the disk is back" in text
        assert made["blocked"].id not in (await page.get("/"))[1]


async def test_letters_go_out_come_in_and_are_dealt_with(tmp_path: Path) -> None:
    """One is written in the page; one that came waits until it is marked as read; to nobody there is none."""
    async with open_office(config_of(tmp_path)) as office:
        await hire(office, "ada")
        mail = await office.mailbox.send("ada", OPERATOR, "The invoices are sorted.")
    async with page_of(tmp_path) as page:
        assert (await page.post("/team/letters", ("to", "ada"), ("text", "Thank you.")))[0] == 200
        assert (await page.post("/team/letters", ("to", "ada"), ("text", "  ")))[0] == 400
        assert (await page.post("/team/letters", ("to", "No Body"), ("text", "x")))[0] == 400
        _, text = await page.get("/team")
        assert "The invoices are sorted." in text and f"/team/letters/{mail.id}/read" in text
        _, text = await page.post(f"/team/letters/{mail.id}/read")
        assert "The invoices are sorted." in text and f"/team/letters/{mail.id}/read" not in text
        assert (await page.post("/team/letters/nothing/read"))[0] == 400
    async with open_office(config_of(tmp_path)) as office:
        (sent,) = await office.mailbox.list("ada", "inbox")
        assert (sent.mail.sender, sent.mail.text) == (OPERATOR, "Thank you.")
        assert [kept.mail.id for kept in await office.mailbox.list(OPERATOR, "archive")] == [mail.id]


async def test_a_task_is_put_on_the_board(tmp_path: Path) -> None:
    """For whoever may take it or for one agent, in the page's project; an empty one is refused."""
    async with open_office(config_of(tmp_path)) as office:
        await hire(office, "ada")
    async with page_of(tmp_path, project=tmp_path) as page:
        assert (await page.post("/team/tasks", ("text", "count the files"), ("to", "ada")))[0] == 200
        assert (await page.post("/team/tasks", ("text", " "), ("to", "ada")))[0] == 400
        assert (await page.post("/team/tasks", ("text", "count"), ("to", "nobody-here")))[0] == 400
    async with open_office(config_of(tmp_path)) as office:
        (task,) = await office.board.list()
        assert (task.text, task.assignee, task.project) == ("count the files", "ada", str(tmp_path))


async def test_looking_at_the_team_is_no_change_of_it(tmp_path: Path) -> None:
    """A page that looks whenever the books change does not make itself look again; a change does."""
    await with_team(tmp_path, "Sort the invoices")
    site = site_at(tmp_path)
    async with page_of(tmp_path) as page:
        before = signatures(site)
        for path in ("/team?part", "/", "/team", "/?part"):
            await page.get(path)
        assert signatures(site) == before
        await page.post("/team/tasks", ("text", "count the files"))
        after = signatures(site)
    assert after["team"] != before["team"] and after["state"] != before["state"]
    assert after["running"] == before["running"]
