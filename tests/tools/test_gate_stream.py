"""Questions and answers on the stream."""

from __future__ import annotations

import asyncio
import logging

import pytest

from artoo.bus.inprocess import InProcessBus
from artoo.contracts.confirmation import ConfirmationAnswer, ConfirmationRequest, Consent
from artoo.contracts.roles import Role
from artoo.runtime.app.system import SystemClock, UuidIds
from artoo.tools.approval.prompts import AskOnStream


async def test_only_the_answer_with_the_digest_counts(caplog: pytest.LogCaptureFixture) -> None:
    """Answers to other acts are ignored and logged; the right one ends the wait; a second one changes nothing."""
    bus = InProcessBus(SystemClock(), UuidIds())
    user, questions = bus.port(Role.USER, "t"), AskOnStream(bus.port(Role.GATE, "t"))
    async with asyncio.TaskGroup() as group:
        listening = group.create_task(questions.run())
        asking = group.create_task(questions.ask(ConfirmationRequest(digest="right", title="t")))
        question = await user.receive()
        assert isinstance(question.payload, ConfirmationRequest)
        with caplog.at_level(logging.WARNING):
            user.publish(ConfirmationAnswer(digest="wrong", consent=Consent.ONCE, by="x"), cause=question)
            user.publish(ConfirmationAnswer(digest="right", consent=Consent.NO, by="person"), cause=question)
            user.publish(ConfirmationAnswer(digest="right", consent=Consent.ONCE, by="person"), cause=question)
            assert (await asking).consent is Consent.NO
            await asyncio.sleep(0)
        bus.close_task("t")
        await listening
    assert "digest wrong" in caplog.text
    assert "digest right" not in caplog.text  # a second answer to what was asked is a race and no surprise


async def test_a_question_that_is_given_up_is_forgotten() -> None:
    """Cancelling the asker leaves nothing behind; the same act can be asked about again."""
    bus = InProcessBus(SystemClock(), UuidIds())
    user, questions = bus.port(Role.USER, "t"), AskOnStream(bus.port(Role.GATE, "t"))
    request = ConfirmationRequest(digest="d", title="t")
    async with asyncio.TaskGroup() as group:
        listening = group.create_task(questions.run())
        asking = group.create_task(questions.ask(request))
        await user.receive()
        asking.cancel()
        await asyncio.wait([asking])
        again = group.create_task(questions.ask(request))
        question = await user.receive()
        user.publish(ConfirmationAnswer(digest="d", consent=Consent.ONCE, by="person"), cause=question)
        assert (await again).consent is Consent.ONCE
        listening.cancel()
