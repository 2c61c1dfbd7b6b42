"""Tasks that are begun in the page: asked there, applied in part, put back, stopped. The whole runtime works."""

from __future__ import annotations

import html
import re
import subprocess
from pathlib import Path

from web_changes import CHANGE, script
from web_server import hidden, page_of

from artoo.tasklog.reader import list_tasks
from artoo.testing import ScriptedModel


async def test_a_part_of_a_difference_is_applied_and_the_rest_discarded(tmp_path: Path, project: Path) -> None:
    """The review waits in the page; one path is chosen; the rest waits, is discarded; then it is put back."""
    home = tmp_path / "artoo"
    with ScriptedModel(script()) as model:
        async with page_of(home, model=model) as page:
            task = await page.begin("tidy up", project)
            where = f"/tasks/{task}/difference"
            text = await page.until(where, 'name="consent" value="chosen"')
            assert "gone.txt" in text and "deletion" in text and "+new" in text
            edited = str(project / "a.txt")
            fields = (("key", hidden(text, "key")), ("digest", hidden(text, "digest")))
            status, said = await page.post(
                f"/tasks/{task}/answer", *fields, ("consent", "chosen"), ("path", edited)
            )
            assert status == 200, said
            text = await page.until(where, 'name="what" value="all"')
            assert (project / "a.txt").read_text() == "new\n" and (project / "gone.txt").exists()
            status, said = await page.post(f"/tasks/{task}/apply", ("what", "all"), ("digest", "0" * 64))
            assert status == 400 and (project / "gone.txt").exists()
            (project / "gone.txt").write_text("the person's, meanwhile\n")
            _, text = await page.get(where)
            made = (("what", "chosen"), ("path", str(project / "made.txt")), ("digest", hidden(text, "digest")))
            assert (await page.post(f"/tasks/{task}/apply", *made))[0] == 200
            _, text = await page.get(where)
            assert 'value="all"' not in text and 'value="chosen"' not in text  # only a conflict is left
            status, said = await page.post(f"/tasks/{task}/discard", ("digest", hidden(text, "digest")))
            assert status == 200 and "The changes were discarded." in said
            status, said = await page.post(f"/tasks/{task}/undo")
            assert status == 200 and edited in said
            assert (project / "a.txt").read_text() == "old\n"


def _run(command: str, place: Path) -> None:
    subprocess.run(command, shell=True, cwd=place, check=True)


def _subjects(project: Path) -> list[str]:
    done = subprocess.run(["git", "log", "--format=%s"], cwd=project, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


async def test_a_commit_has_one_box(tmp_path: Path, project: Path) -> None:
    """As on a terminal: the branch has one line with its commits, and none of git's own files is named."""
    home, git = tmp_path / "artoo", "git -c user.name=u -c user.email=e@example.org"
    _run(f"{git} init -q -b main . && {git} add . && {git} commit -qm one", project)
    commit = f"{git} commit -qam two"
    with ScriptedModel(script(change=f"{CHANGE}; {commit}")) as model:
        async with page_of(home, model=model) as page:
            task = await page.begin("tidy up", project)
            text = await page.until(f"/tasks/{task}/difference", 'name="consent" value="chosen"')
            boxes = [html.unescape(one) for one in re.findall(r'name="path" value="([^"]*)"', text)]
            assert 'name="paths"' not in text and not any("/.git/" in one for one in boxes)
            [branch] = [one for one in boxes if "/.git " in one]
            fields = (("key", hidden(text, "key")), ("digest", hidden(text, "digest")))
            status, said = await page.post(
                f"/tasks/{task}/answer", *fields, ("consent", "chosen"), ("path", branch)
            )
            assert status == 200, said
            await page.until(f"/tasks/{task}/difference", 'name="what" value="all"')
            assert _subjects(project) == ["two", "one"]


async def test_every_prompt_and_answer_is_in_the_page(tmp_path: Path, project: Path) -> None:
    """Of each model call the system prompt, what was asked and what was answered, and of each tool call its command
    and output: whole, each at an address of its own."""
    home = tmp_path / "artoo"
    with ScriptedModel(script()) as model:
        async with page_of(home, model=model) as page:
            task = await page.begin("tidy up", project)
            text = await page.until(f"/tasks/{task}/difference", 'name="consent" value="keep"')
            fields = (("key", hidden(text, "key")), ("digest", hidden(text, "digest")), ("consent", "keep"))
            await page.post(f"/tasks/{task}/answer", *fields)
            await page.until(f"/tasks/{task}", f'formaction="/tasks/{task}/discard"')
            _, how = await page.get(f"/tasks/{task}/how")
            assert "Who decided what" in how and "made.txt exists" in how
            said: list[str] = []
            while (found := await page.get(f"/tasks/{task}/events/{len(said)}"))[0] == 200:
                said.append(html.unescape(found[1]))
    calls = [text for text in said if ">ModelCalled" in text]
    assert len(model.player.requests) == len(calls) == 2
    for asked, text in zip(model.player.requests, calls, strict=True):
        for part in (asked.system, asked.user):
            assert part.strip() in text
    assert CHANGE in calls[1]
    (tool,) = [text for text in said if ">ToolCalled" in text]
    assert CHANGE in tool


async def test_a_task_is_stopped_from_the_page(tmp_path: Path, project: Path) -> None:
    """It ends with an honest result."""
    home = tmp_path / "artoo"
    async with page_of(home, model=ScriptedModel(script(seconds=30), leftover=True)) as page:
        task = await page.begin("tidy up", project)
        await page.post(f"/tasks/{task}/stop")
        await page.until(f"/tasks/{task}", 'class="state stopped"')
    [found] = list_tasks(home)
    assert found.result is not None and found.result.stopped_by == "interrupted"


async def test_what_cannot_begin_says_why(tmp_path: Path, project: Path) -> None:
    """An empty request, a missing directory: in words, and nothing is started."""
    home = tmp_path / "artoo"
    async with page_of(home, model=ScriptedModel({}, leftover=True)) as page:
        assert (await page.post("/tasks", ("text", "  ")))[0] == 400
        status, text = await page.post("/tasks", ("text", "do it"), ("project", str(project / "nowhere")))
        assert status == 400 and "does not exist" in text
        assert list_tasks(home) == []
