"""Tasks that are begun in the page: asked there, applied in part, put back, stopped. The whole runtime works."""

from __future__ import annotations

import asyncio
import html
import re
from pathlib import Path

import pytest
from web_server import Page, page_of

from artoo.contracts.settling import ApplyMode
from artoo.tasklog.reader import list_tasks
from artoo.testing import ScriptedModel, slow, with_body
from artoo.testing.script import Entry

CHANGE = "sed -i s/old/new/ a.txt; rm gone.txt; echo made > made.txt"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with two files in a home of its own."""
    place = tmp_path / "person" / "project"
    place.mkdir(parents=True)
    (place / "a.txt").write_text("old\n")
    (place / "gone.txt").write_text("here\n")
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    return place


def script(seconds: float = 0.0) -> dict[str, Entry]:
    made = {"check": "file_exists", "path": "made.txt"}
    criteria = [{"text": "made.txt exists", "mode": "verifiable", "check": made}]
    plan = {"subtasks": [{"intent": "tidy up", "tool": "shell", "success_criteria": criteria}]}
    if seconds:
        return {"Plan": slow(plan, seconds)}
    return {"Plan": plan, "ExecutorStep": with_body({"tool": "shell", "is_final": True}, CHANGE)}


async def begun(page: Page, project: Path) -> str:
    """A task that the page's own form began; its id."""
    fields = (("text", "tidy up"), ("project", str(project)), ("apply", ApplyMode.NEW.value))
    status, text = await page.post("/tasks", *fields)
    assert status == 200, text
    found = re.search(r"/tasks/([0-9a-f-]{36})/stream", text)
    assert found is not None, text
    return found[1]


async def until(page: Page, path: str, words: str) -> str:
    """The text of a page as soon as it says this."""
    async with asyncio.timeout(120):
        while True:
            _, text = await page.get(path)
            if words in text:
                return text
            await asyncio.sleep(0.1)


def hidden(text: str, name: str) -> str:
    """A hidden field of a form."""
    found = re.search(f'name="{name}" value="([^"]*)"', text)
    assert found is not None, name
    return html.unescape(found[1])


async def test_a_part_of_a_difference_is_applied_and_the_rest_discarded(tmp_path: Path, project: Path) -> None:
    """The review waits in the page; one path is chosen; the rest waits, is discarded; then it is put back."""
    home = tmp_path / "artoo"
    with ScriptedModel(script()) as model:
        async with page_of(home, model=model) as page:
            task = await begun(page, project)
            where = f"/tasks/{task}/difference"
            text = await until(page, where, 'name="consent" value="chosen"')
            assert "gone.txt" in text and "deletion" in text and "+new" in text
            edited = str(project / "a.txt")
            fields = (("key", hidden(text, "key")), ("digest", hidden(text, "digest")))
            status, said = await page.post(
                f"/tasks/{task}/answer", *fields, ("consent", "chosen"), ("path", edited)
            )
            assert status == 200, said
            text = await until(page, where, 'name="what" value="all"')
            assert (project / "a.txt").read_text() == "new\n" and (project / "gone.txt").exists()
            status, said = await page.post(f"/tasks/{task}/apply", ("what", "all"), ("digest", "0" * 64))
            assert status == 400 and (project / "gone.txt").exists()
            status, said = await page.post(f"/tasks/{task}/discard", ("digest", hidden(text, "digest")))
            assert status == 200 and "Nothing of this task waits" in said
            status, said = await page.post(f"/tasks/{task}/undo")
            assert status == 200 and edited in said
            assert (project / "a.txt").read_text() == "old\n"


async def test_a_task_is_stopped_from_the_page(tmp_path: Path, project: Path) -> None:
    """It ends with an honest result."""
    home = tmp_path / "artoo"
    async with page_of(home, model=ScriptedModel(script(seconds=30))) as page:
        task = await begun(page, project)
        await page.post(f"/tasks/{task}/stop")
        await until(page, f"/tasks/{task}", 'class="state interrupted"')
    [found] = list_tasks(home)
    assert found.result is not None and found.result.stopped_by == "interrupted"


async def test_what_cannot_begin_says_why(tmp_path: Path, project: Path) -> None:
    """An empty request, a missing directory: in words, and nothing is started."""
    home = tmp_path / "artoo"
    async with page_of(home, model=ScriptedModel({})) as page:
        assert (await page.post("/tasks", ("text", "  ")))[0] == 400
        status, text = await page.post("/tasks", ("text", "do it"), ("project", str(project / "nowhere")))
        assert status == 400 and "does not exist" in text
        assert list_tasks(home) == []
