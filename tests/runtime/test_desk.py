"""The desk: one question in several windows, and the first answer counts."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from artoo.contracts.confirmation import Choice, ConfirmationRequest, Consent, Words
from artoo.contracts.errors import ConfigurationError
from artoo.contracts.steering import UserMessage
from artoo.runtime.approvals.multi_prompt import AskedEverywhere, stoppable
from artoo.runtime.approvals.prompt_store import (
    LONGEST_MESSAGE,
    Given,
    NotAsked,
    TaskDesk,
    answer_question,
    ask_to_stop,
    open_questions,
    send_message,
)
from artoo.tasklog.lock import TaskLock

TASK = "0198f000-0000-7000-8000-000000000000"
QUESTION = ConfirmationRequest(digest="d1", title="shell: delete 3", details=("delete a", "delete b"))


class Terminal:
    """A person at a terminal who answers when told to, and hears what others answered."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.typed: asyncio.Future[Consent] = asyncio.get_running_loop().create_future()
        self.heard: list[Given] = []

    async def __call__(self, request: ConfirmationRequest) -> Consent:
        self.asked.set()
        return await self.typed

    def answered_elsewhere(self, request: ConfirmationRequest, given: Given) -> None:
        self.heard.append(given)


async def waiting(home: Path, terminal: Terminal) -> asyncio.Task[Consent | Choice | Words]:
    """A question that is on the terminal and on the desk."""
    asking = asyncio.ensure_future(AskedEverywhere(terminal, TaskDesk(home, TASK))(QUESTION))
    await terminal.asked.wait()
    return asking


async def test_a_page_answers_and_the_terminal_is_told(tmp_path: Path) -> None:
    """The terminal's dialogue ends, with what was answered and where."""
    terminal = Terminal()
    asking = await waiting(tmp_path, terminal)
    (one,) = open_questions(tmp_path)
    assert (one.task_id, one.request) == (TASK, QUESTION)
    given = answer_question(tmp_path, TASK, one.key, "d1", Consent.TASK, "page")
    assert given.first and await asking is Consent.TASK
    assert [(each.said, each.via) for each in terminal.heard] == [(Consent.TASK, "page")]
    assert terminal.typed.cancelled() and open_questions(tmp_path) == ()


async def test_of_many_answers_one_counts(tmp_path: Path) -> None:
    """Twenty threads answer at once: all are told the same, and one that it was first."""
    asking = await waiting(tmp_path, Terminal())
    (one,) = open_questions(tmp_path)
    said = [Consent.ONCE, Consent.NO] * 10
    given = await asyncio.gather(
        *(asyncio.to_thread(answer_question, tmp_path, TASK, one.key, "d1", each, "page") for each in said)
    )
    assert all(each.said is given[0].said for each in given) and sum(each.first for each in given) == 1
    assert await asking is given[0].said


async def test_an_answer_is_bound_to_what_was_shown(tmp_path: Path) -> None:
    """Another digest or key, a choice where there is nothing to choose: refused, and the question waits on."""
    asking = await waiting(tmp_path, Terminal())
    (one,) = open_questions(tmp_path)
    for key, digest, said in (
        (one.key, "d2", Consent.ONCE),
        ("0" * 16, "d1", Consent.ONCE),
        ("../../x", "d1", Consent.ONCE),
        (one.key, "d1", Choice(paths=("/a",))),
    ):
        with pytest.raises(NotAsked):
            answer_question(tmp_path, TASK, key, digest, said, "page")
    assert not asking.done() and len(open_questions(tmp_path)) == 1
    asking.cancel()
    await asyncio.wait((asking,))
    assert open_questions(tmp_path) == ()


def test_a_question_of_a_dead_process_waits_for_nobody(tmp_path: Path) -> None:
    """Its asker is killed; whoever looks next removes it."""
    code = (
        "import sys, os, signal; from pathlib import Path; sys.path.insert(0, sys.argv[2])\n"
        "from test_desk import QUESTION, TASK; from artoo.runtime.approvals.prompt_store import TaskDesk\n"
        "with TaskDesk(Path(sys.argv[1]), TASK).laid(QUESTION): os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path), str(Path(__file__).parent)], check=False)
    assert list((tmp_path / "desk").glob("*.question"))
    assert open_questions(tmp_path) == () and not list((tmp_path / "desk").glob("*.question"))


async def test_messages_from_other_windows_reach_a_running_task_in_order(tmp_path: Path) -> None:
    """They arrive once, oldest first. A task that does not run takes none; those of an earlier life are dropped."""
    said: list[str] = []
    desk, everything = TaskDesk(tmp_path, TASK), asyncio.Event()

    def hear(message: UserMessage) -> None:
        said.append(message.text)
        if len(said) == 2:
            everything.set()

    assert not send_message(tmp_path, TASK, UserMessage(text="too early"))
    with TaskLock(tmp_path, TASK):
        assert send_message(tmp_path, TASK, UserMessage(text="of an earlier life"))
        desk.begin()
        with stoppable(desk, lambda: None, hear):
            for text in ("first", "second"):
                assert send_message(tmp_path, TASK, UserMessage(text=text, by="web"))
            await asyncio.wait_for(everything.wait(), 10)
        assert said == ["first", "second"]
        with pytest.raises(ConfigurationError, match="longer than"):
            send_message(tmp_path, TASK, UserMessage(text="x" * (LONGEST_MESSAGE + 1)))


async def test_a_wish_to_stop_reaches_the_task_and_ends_its_question(tmp_path: Path) -> None:
    """The task is asked once, and an open question is answered with no."""
    stopped = asyncio.Event()
    desk = TaskDesk(tmp_path, TASK)
    assert not ask_to_stop(tmp_path, TASK)
    with TaskLock(tmp_path, TASK), stoppable(desk, stopped.set, lambda _: None):
        asking = await waiting(tmp_path, Terminal())
        assert ask_to_stop(tmp_path, TASK)
        await asyncio.wait_for(stopped.wait(), 10)
        assert await asking is Consent.NO
    desk.begin()
    assert not desk.stop_wanted()
