"""What a library's `confirm` may return, and what it means."""

from __future__ import annotations

import asyncio

import pytest

from artoo.contracts.confirmation import NOBODY, Choice, ConfirmationRequest, Consent
from artoo.contracts.settling import Review
from artoo.ports.confirm import Said, answer_of
from artoo.runtime.approvals.consent import Answers

ACT = ConfirmationRequest(digest="d", title="send a letter")
REVIEW = ConfirmationRequest(digest="r", title="apply", review=Review(task_id="t"))


@pytest.mark.parametrize(
    ("said", "consent", "paths"),
    [
        (True, Consent.ONCE, ()),
        (False, Consent.NO, ()),
        (Consent.DISCARD, Consent.DISCARD, ()),
        (Consent.KEEP, Consent.KEEP, ()),
        (Choice(paths=("/a",)), Consent.ONCE, ("/a",)),
        (["/a", "/b"], Consent.ONCE, ("/a", "/b")),
        ([], Consent.NO, ()),
        ("yes", Consent.NO, ()),
    ],
)
def test_a_review_is_answered_by_a_bool_a_consent_or_paths(
    said: Said, consent: Consent, paths: tuple[str, ...]
) -> None:
    """True is all of it, paths are these, an empty choice and a word that is no consent are no."""
    answer = answer_of(REVIEW, said, "person")
    assert (answer.digest, answer.consent, answer.paths) == ("r", consent, paths)


@pytest.mark.anyio
async def test_a_dialogue_that_others_cancel_is_no_and_ends_nothing() -> None:
    """A page that is closed may cancel what its `confirm` waits for: nobody has answered, and the task goes on."""

    async def confirm(_: ConfirmationRequest) -> bool:
        closed = asyncio.get_running_loop().create_future()
        closed.cancel()
        return await closed

    answer = await Answers(confirm=confirm).answer(ACT)
    assert (answer.consent, answer.by) == (Consent.NO, NOBODY)


@pytest.mark.anyio
async def test_a_task_that_is_cancelled_while_it_asks_ends() -> None:
    """The cancellation of whoever asks is no answer."""
    asked = asyncio.Event()

    async def confirm(_: ConfirmationRequest) -> bool:
        asked.set()
        return await asyncio.get_running_loop().create_future()

    asking = asyncio.create_task(Answers(confirm=confirm).answer(ACT))
    await asked.wait()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
