"""The past of a task, read from its log."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from artoo.contracts.base import Contract
from artoo.contracts.confirmation import PERSON, ConfirmationAnswer, ConfirmationRequest, Consent
from artoo.contracts.envelope import Envelope
from artoo.contracts.execution import CallEffects, ToolCall, ToolCalled, ToolStarted
from artoo.contracts.roles import Role
from artoo.runtime.acts import past_of
from artoo.runtime.config import Config
from artoo.tools.past import AskFirst, Past, RunAgain

NOW = datetime(2026, 6, 1, tzinfo=UTC)


def started(act: str, effects: CallEffects = CallEffects.STAGED) -> ToolStarted:
    return ToolStarted(subtask_id="s", attempt=1, act=act, tool="shell", effects=effects)


def called(act: str) -> ToolCalled:
    return ToolCalled(subtask_id="s", attempt=1, act=act, call=ToolCall(tool="shell", identity=("shell:ls",)))


def past(home: Path, payloads: Iterable[Contract | tuple[Contract, str]], at: datetime = NOW) -> Past:
    """Of messages that are numbered; a pair names its cause."""
    pairs = [one if isinstance(one, tuple) else (one, None) for one in payloads]
    envelopes = [
        Envelope(str(number), Role.EXECUTOR, "t", at, payload, cause_id=cause)
        for number, (payload, cause) in enumerate(pairs)
    ]
    return past_of(Config().at_home(home), "t", envelopes, NOW)


def test_calls_without_a_record_were_under_way(tmp_path: Path) -> None:
    """Started and not called: under way. A call that went further than it began counts as far as it went."""
    outside = started("s/2", CallEffects.OUTSIDE)
    found = past(tmp_path, [started("s/1"), called("s/1"), started("s/2"), outside, started("s/2"), started("s/3")])
    assert found.started == {"s/2": outside, "s/3": started("s/3")}
    assert found.ended == {"s/1"}
    assert (found.verdict("s/2"), found.verdict("s/3")) == (AskFirst(outside), RunAgain())
    assert [call.tool for call in found.calls] == ["shell"]


def test_what_is_older_than_the_journals_is_not_known(tmp_path: Path) -> None:
    """A staged call that was cut off before the oldest journal asks, because its journal may be gone."""
    long_ago = NOW - timedelta(days=Config().undo.days + 1)
    assert past(tmp_path, [started("s/1")], long_ago).verdict("s/1") == AskFirst(started("s/1"))


def test_answers_go_with_their_questions(tmp_path: Path) -> None:
    """Pairs by cause and digest, in order; questions without an answer and answers to nothing are left out."""

    def question(digest: str) -> ConfirmationRequest:
        return ConfirmationRequest(digest=digest, title=digest)

    def answer(digest: str) -> ConfirmationAnswer:
        return ConfirmationAnswer(digest=digest, consent=Consent.TASK, by=PERSON)

    found = past(
        tmp_path,
        [question("a"), question("b"), (answer("b"), "1"), question("c"), (answer("x"), "3"), (answer("a"), "9")],
    )
    assert found.consented == ((question("b"), answer("b")),)


def test_a_log_of_an_older_artoo_names_no_acts(tmp_path: Path) -> None:
    """Records without an act are the task's history all the same."""
    found = past(tmp_path, [called("")])
    assert (len(found.calls), found.started, found.verdict("s/1")) == (1, {}, None)
