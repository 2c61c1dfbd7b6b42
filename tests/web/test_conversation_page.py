"""A task's page as a conversation: live texts, follow-ups, images, search. The whole runtime works."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path

import aiohttp
from web_changes import script
from web_scenes import BEGAN, TASK, Writer, opening, stopped_by, whole
from web_server import Page, page_of

from artoo.contracts.conversation import TextDelta
from artoo.contracts.envelope import Envelope
from artoo.contracts.request import AttachedImage, TaskSpec
from artoo.contracts.roles import Role
from artoo.contracts.solution import StoppedBy
from artoo.tasklog.layout import images_directory
from artoo.testing import Asked, ScriptedModel, with_body
from artoo.testing.replies import Scripted
from artoo.web.starting import Live

PNG = b"\x89PNG\r\n\x1a\n" + bytes(40)
FAILED, CUT = "0198f333-0000-7000-8000-00000000000d", "0198f444-0000-7000-8000-00000000000e"


async def test_the_output_of_a_command_is_shown_while_it_runs(tmp_path: Path, project: Path) -> None:
    """It is in no log yet. When the command has ended, the log has it."""
    waits = script(change="echo counted 14 modules; sleep 4")
    async with page_of(tmp_path / "artoo", model=ScriptedModel(waits, leftover=True)) as page:
        task = await page.begin("count", project)
        text = await page.until(f"/tasks/{task}", ">counted 14 modules</pre>")
        assert 'class="state working"' in text
        await page.until(f"/tasks/{task}", "Worked for")


def test_the_words_of_one_subtask_are_shown_until_its_turn_is_logged() -> None:
    """Two subtasks write at the same time: the texts are not mixed."""
    live = Live()
    for subtask, text in (("1", "Let me "), ("1", "look."), ("2", "And I"), ("1", "so")):
        payload = TextDelta(contract="ExecutorStep", text=text, subtask_id=subtask)
        live.hear(Envelope("id", Role.EXECUTOR, TASK, BEGAN, payload, subtask))
    assert live.words == "so"


async def test_a_sentence_at_the_review_keeps_the_changes_for_the_next_task(tmp_path: Path, project: Path) -> None:
    """The next task has the conversation, and works on the changes that stay pending."""
    plans = script()

    def answer(asked: Asked) -> Scripted:
        if asked.contract == "Plan":
            return plans["Plan"]  # pyright: ignore[reportReturnType]
        change = (
            "sed -i s/new/NEW/ a.txt"
            if "in capitals" in asked.user
            else "sed -i s/old/new/ a.txt; echo made > made.txt"
        )
        return with_body({"tool": "shell", "is_final": True}, change)

    async with page_of(tmp_path / "artoo", model=ScriptedModel(answer, leftover=True)) as page:
        first = await page.begin("tidy up", project)
        await page.until(f"/tasks/{first}", 'name="consent" value="keep"')
        status, text = await page.post(f"/tasks/{first}/say", ("text", "no, in capitals"))
        assert status == 200 and "no, in capitals" in text and "tidy up" in text
        assert f'href="/tasks/{first}"' in text and (project / "a.txt").read_text() == "old\n"
        second = text.partition('action="/tasks/')[2][:36]
        text = await page.until(f"/tasks/{second}", 'name="consent" value="keep"')
        assert ">a.txt</code>" in text and f">{project}/a.txt<" not in text and "+NEW" in text


async def test_a_stopped_task_is_continued(tmp_path: Path, project: Path) -> None:
    """With a button on its page; it ends as if nobody had stopped it."""
    plans = script()

    def answer(asked: Asked) -> Scripted:
        if asked.contract == "Plan":
            return plans["Plan"]  # pyright: ignore[reportReturnType]
        seconds = 0 if "was not repeated" in asked.user else 60
        return with_body({"tool": "shell", "is_final": True}, f"sleep {seconds}; echo made > made.txt")

    async with page_of(tmp_path / "artoo", model=ScriptedModel(answer, leftover=True)) as page:
        task = await page.begin("tidy up", project)
        await page.until(f"/tasks/{task}", "sleep 60")
        await page.post(f"/tasks/{task}/stop")
        text = await page.until(f"/tasks/{task}", 'class="state stopped"')
        assert f'action="/tasks/{task}/resume"' in text
        status, text = await page.post(f"/tasks/{task}/resume")
        assert status == 200, text
        await page.until(f"/tasks/{task}", 'class="state done"')


async def test_history_is_searched_and_filtered(tmp_path: Path) -> None:
    """By words of requests and answers in any case, and by state."""
    Writer(tmp_path).say(whole())
    Writer(tmp_path, FAILED).say([*opening("Pay the invoices"), stopped_by(StoppedBy.NO_MODEL)])
    Writer(tmp_path, CUT).say(opening("Draw the tree"))
    async with page_of(tmp_path) as page:
        for query, found in (
            ("", {TASK, FAILED, CUT}),
            ("q=IMPORTS+the+most", {TASK}),
            ("q=invoices", {FAILED}),
            ("state=stopped", {CUT}),
            ("state=done&q=invoices", set[str]()),
        ):
            for part in ("", "part&"):
                text = (await page.get(f"/?{part}{query}"))[1]
                assert {one for one in (TASK, FAILED, CUT) if f'id="task-{one}"' in text} == found, query


async def posted(page: Page, path: str, image: bytes) -> tuple[int, str]:
    """A form with an image, as a browser sends it."""
    form = aiohttp.FormData({"text": "What is on it?"})
    form.add_field("images", image, filename="shot.png", content_type="image/png")
    async with page.client.post(page.address + path, data=form, headers={"origin": page.address}) as answer:
        return answer.status, await answer.text()


async def test_images_reach_the_runtime_and_are_shown(tmp_path: Path) -> None:
    """What is no image, and what no model can see, is refused with the reason; an attached one is on the page."""
    async with page_of(tmp_path, model=ScriptedModel({}, leftover=True)) as page:
        status, text = await posted(page, "/tasks", b"words")
        assert status == 400 and "is no image that can be attached" in text
        status, text = await posted(page, "/tasks", PNG)
        assert status == 400 and "no configured model is said to take images" in text
        writer = Writer(tmp_path)
        digest = hashlib.sha256(PNG).hexdigest()
        image = AttachedImage(name="shot.png", media_type="image/png", size=len(PNG), sha256=digest)
        spec = TaskSpec(task_id="look", intent="look", raw_input="look", images=(image,))
        writer.say([*opening("look"), (Role.PERCEIVER, spec)])
        folder = images_directory(tmp_path, TASK)
        await asyncio.to_thread(folder.mkdir)
        await asyncio.to_thread((folder / image.sha256).write_bytes, PNG)
        where = f"/tasks/{TASK}/images/{image.sha256}"
        assert f'<img src="{where}" alt="shot.png">' in (await page.get(f"/tasks/{TASK}"))[1]
        async with page.client.get(page.address + where) as answer:
            assert answer.status == 200 and answer.content_type == "image/png" and await answer.read() == PNG
        assert (await page.get(f"/tasks/{TASK}/images/{'0' * 64}"))[0] == 404
