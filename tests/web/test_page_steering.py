"""Tasks that are steered from the web UI: messages, answers in words, the checklist. The whole runtime works."""

from __future__ import annotations

from pathlib import Path

from web_scenes import TASK, Writer, opening
from web_server import hidden, page_of

from artoo.contracts.confirmation import Consent, Words
from artoo.contracts.plan import Plan
from artoo.contracts.steering import PlanProposed, QuestionAsked
from artoo.runtime.approvals.consent import plan_shown, question_of
from artoo.runtime.approvals.prompt_store import TaskDesk
from artoo.tasklog.lock import TaskLock
from artoo.testing import Asked, Reply, ScriptedModel, native_call, with_body
from artoo.testing.replies import Scripted

HEARD = r"\A(?![\s\S]*unfinished)\s*\S"
MESSAGE = "Name the colour in <b>capitals</b>."
PLAN = {
    "subtasks": [{"intent": "name the colour", "tool": "shell"}],
    "task_criteria": [
        {"text": "there is an answer", "mode": "verifiable", "check": {"check": "output_matches", "regex": HEARD}}
    ],
}


def says(text: str) -> Reply:
    """The executor's last step."""
    return with_body({"tool": "answer"}, text, "text")


def works_until(words: str) -> ScriptedModel:
    """A model that goes on working until these words reach it."""

    def answer(asked: Asked) -> Scripted:
        if asked.contract == "Plan":
            return PLAN
        if words in asked.user:
            return says("BLUE")
        return with_body({"tool": "shell", "is_final": False}, f"echo {asked.number}; sleep 0.3")

    return ScriptedModel(answer, leftover=True)


async def test_a_message_reaches_a_running_task(tmp_path: Path, project: Path) -> None:
    """The executor reads it and acts on it; the web UI shows it as text. After the end, it starts another."""
    async with page_of(tmp_path / "artoo", model=works_until(MESSAGE)) as page:
        task = await page.begin("Which colour?", project)
        await page.until(f"/tasks/{task}", f'action="/tasks/{task}/say"')
        assert (await page.post(f"/tasks/{task}/say", ("text", "  ")))[0] == 400
        assert (await page.post(f"/tasks/{task}/say", ("text", MESSAGE), origin="http://evil.example"))[0] == 403
        assert (await page.post(f"/tasks/{task}/say", ("text", MESSAGE)))[0] == 200
        text = await page.until(f"/tasks/{task}", 'class="state done"')
        assert "BLUE" in text and "Name the colour in &lt;b&gt;capitals&lt;/b&gt;." in text
        status, text = await page.post(f"/tasks/{task}/say", ("text", "one more thing"))
        assert (
            status == 200
            and "one more thing" in text
            and "Which colour?" in text
            and f'href="/tasks/{task}"' in text
        )


async def test_a_turn_is_interrupted_and_the_task_waits_for_the_message(tmp_path: Path, project: Path) -> None:
    """What the interrupted turn said never counts."""

    def answer(asked: Asked) -> Scripted:
        if asked.contract == "Plan":
            return PLAN
        return says("BLUE") if MESSAGE in asked.user else Reply(text="blue", delay=90.0)

    model = ScriptedModel(answer, leftover=True)
    async with page_of(tmp_path / "artoo", model=model) as page:
        task = await page.begin("Which colour?", project)
        await page.until(f"/tasks/{task}", "Now: executor")
        assert (await page.post(f"/tasks/{task}/say", ("text", ""), ("hold", "1")))[0] == 200
        assert (await page.post(f"/tasks/{task}/say", ("text", MESSAGE)))[0] == 200
        text = await page.until(f"/tasks/{task}", 'class="state done"')
        assert "BLUE" in text


async def test_a_question_in_words_is_answered_and_the_checklist_is_shown(tmp_path: Path, project: Path) -> None:
    """The executor asks the user, waits, and goes on with what they wrote."""
    items = [{"text": "read a.txt", "status": "done"}, {"text": "name <it>", "status": "in_progress"}]
    turns = [native_call({"items": items}, "update_plan"), native_call({"question": "Which file?"}, "ask_person")]
    with ScriptedModel({"Plan": PLAN, "ExecutorStep": [*turns, says("It is b.")]}) as model:
        async with page_of(tmp_path / "artoo", model=model) as page:
            task = await page.begin("Choose one.", project)
            await page.until(f"/tasks/{task}", "name &lt;it&gt;")
            text = await page.until(f"/tasks/{task}", 'name="words"')
            assert "Which file?" in text and 'value="no"' not in text
            assert "read a.txt" in text and "name &lt;it&gt;" in text and "in progress" in text
            fields = (("key", hidden(text, "key")), ("digest", hidden(text, "digest")))
            assert (await page.post(f"/tasks/{task}/answer", *fields, ("words", "b, please")))[0] == 200
            await page.until(f"/tasks/{task}", 'class="state done"')
    assert "The user answers: b, please" in model.player.of("ExecutorStep")[-1].user


async def test_the_button_decides_about_a_plan(tmp_path: Path) -> None:
    """What is in the box is what must be different, except for a no, which rejects the plan."""
    plan = Plan.model_validate({"subtasks": [{"intent": "name the colour"}]})
    assert plan_shown(PlanProposed(plan=plan)).language == "en"
    assert question_of(QuestionAsked(subtask_id="1.1", question="哪个文件？")).language == "zh"
    writer = Writer(tmp_path)
    with TaskLock(tmp_path, TASK):
        writer.say(opening())
        async with page_of(tmp_path) as page:
            for consent, words, said in (
                ("once", "", Consent.ONCE),
                ("once", "in German", Words(text="in German")),
                ("no", "in German", Consent.NO),
            ):
                with TaskDesk(tmp_path, TASK).laid(plan_shown(PlanProposed(plan=plan))) as slip:
                    text = await page.until(f"/tasks/{TASK}", 'name="words"')
                    assert "name the colour" in text
                    fields = (("key", hidden(text, "key")), ("digest", hidden(text, "digest")))
                    answer = (*fields, ("consent", consent), ("words", words))
                    assert (await page.post(f"/tasks/{TASK}/answer", *answer))[0] == 200
                    given = slip.given()
                    assert given is not None and given.said == said
    writer.close()
