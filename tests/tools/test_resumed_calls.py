"""Calls that a crash cut off: what a resumed task does about each, and which answers still hold."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import pytest
from gate_world import Person
from tool_doubles import PlainWorkspace, StillClock

from artoo.contracts.confirmation import (
    NOBODY,
    PERSON,
    POLICY,
    AskedAct,
    ConfirmationAnswer,
    ConfirmationRequest,
    Consent,
)
from artoo.contracts.execution import CallEffects, CallStatus, ToolCall, ToolStarted
from artoo.contracts.plan import MustNot
from artoo.ports.confirm import Questions
from artoo.ports.sandbox import Roots
from artoo.ports.tools import Departure, Ticket
from artoo.testing.asking import AskPerson
from artoo.tools.approval.ask_first import Asking, always
from artoo.tools.approval.gate import AGAIN, Gate
from artoo.tools.approval.prompts import AskNobody
from artoo.tools.core.default_tools import Shared, builtin_tools
from artoo.tools.core.function_tools import tool, user_tool
from artoo.tools.core.registry import Registry, SubTaskToolbox
from artoo.tools.resume.earlier_runs import Consented, Past
from artoo.tools.resume.in_flight import UnderWay, digest_of_call, under_way
from artoo.tools.resume.resume_calls import Resumed
from artoo.workspace.changes.path_class import Places


def started(effects: CallEffects, act: str = "s/1", text: str = "hello") -> ToolStarted:
    digest = digest_of_call("send", text) if effects is CallEffects.OUTSIDE else ""
    return ToolStarted(subtask_id="s", attempt=1, act=act, tool="send", input=text, effects=effects, digest=digest)


def past(effects: CallEffects, **more: object) -> Past:
    return Past(started={"s/1": started(effects)}, **more)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("before", "cut_off"),
    [
        (Past(), None),
        (past(CallEffects.NONE), None),
        (past(CallEffects.STAGED), started(CallEffects.STAGED)),
        (past(CallEffects.OUTSIDE), started(CallEffects.OUTSIDE)),
    ],
)
def test_what_follows_for_each_kind_of_call(before: Past, cut_off: object) -> None:
    """Reading is repeated; what may have had effects is not."""
    assert before.cut_off("s/1") == cut_off
    assert before.cut_off("s/2") is None


@dataclass
class Sender:
    """A user's function that cannot be taken back, behind the gate of a resumed task."""

    before: Past
    questions: Questions
    sent: list[str] = field(default_factory=list[str])
    announced: list[str] = field(default_factory=list[str])

    def box(self) -> SubTaskToolbox:
        @tool(writes=True)
        def send(text: str) -> str:
            """Sends a text."""
            self.sent.append(text)
            return "sent"

        gate = Gate(self.questions)
        gate.restore(self.before)
        tools = [Asking(user_tool(send), gate, always())]
        return Registry(tools, StillClock(), gate=gate, resumed=Resumed(self.before, gate)).toolbox("s", MustNot())

    async def call(self, box: SubTaskToolbox, act: str = "s/1", text: str = "hello") -> ToolCall:
        def announce(departure: Departure) -> None:
            self.announced.append(f"{act} {departure.effects}")

        return await box.call("send", {"text": text}, Ticket(act, announce))


def yes_to_the_first() -> Consented:
    """The consent that the call had before the crash."""
    digest = _digest_of_send()
    request = ConfirmationRequest(digest=digest, title="tool send", act="s/1")
    return request, ConfirmationAnswer(digest=digest, consent=Consent.ONCE, by=PERSON)


def _digest_of_send() -> str:
    """What Asking binds its question about `send("hello")` to."""
    return digest_of_call("send", json.dumps({"text": "hello"}))


async def test_an_act_outside_is_done_again_after_a_yes() -> None:
    """The question says that nobody knows; a yes to it is enough, and covers this one call only."""
    person = Person([Consent.ONCE, Consent.ONCE])
    sender = Sender(past(CallEffects.OUTSIDE, consented=(yes_to_the_first(),)), AskPerson(person))
    box = sender.box()
    assert (await sender.call(box)).status is CallStatus.OK
    assert [question.title for question in person.asked] == ["do it again: send"]
    assert "it is unknown whether it took effect" in person.asked[0].details[0]
    assert person.asked[0].details[1] == "hello"
    assert (await sender.call(box, "s/2")).status is CallStatus.OK
    assert [question.title for question in person.asked][1:] == ["tool send"]
    assert sender.announced == ["s/1 outside", "s/2 outside"]


@pytest.mark.parametrize("who", ["person", "nobody"])
async def test_an_act_outside_is_never_redone_unasked(who: str) -> None:
    """After a no, or where nobody can be asked, neither it nor the same call later is run, and neither is done."""
    questions = AskPerson(Person([Consent.NO])) if who == "person" else AskNobody()
    sender = Sender(past(CallEffects.OUTSIDE, consented=(yes_to_the_first(),)), questions)
    box = sender.box()
    call = await sender.call(box)
    later = await sender.call(box, "s/2")
    for one in (call, later):
        assert (one.status, one.withheld_by) == (CallStatus.INTERRUPTED, who)
        assert "it is unknown whether it took effect" in (one.reason or "")
    assert (sender.sent, sender.announced) == ([], [])


async def test_what_the_log_has_redacted_is_not_run() -> None:
    """A call whose secret the log has lost is refused; nobody is asked."""
    sender = Sender(past(CallEffects.NONE, redacted="[redacted]"), AskNobody())
    call = await sender.call(sender.box(), text="key [redacted]")
    assert (call.status, sender.sent) == (CallStatus.REFUSED, [])
    assert "[redacted]" in (call.reason or "")


# --- calls in the workspace -------------------------------------------------------------------------------------


CALLS = (
    ("shell", {"command": "echo b >> a.txt"}),
    ("python", {"code": "print(open('a.txt', 'a').write('b'))"}),
    ("write_file", {"path": "a.txt", "content": "b"}),
    ("edit_file", {"path": "a.txt", "old": "a", "new": "b"}),
)


async def in_workspace(roots: Roots, before: Past, name: str, arguments: dict[str, str], act: str) -> ToolCall:
    gate = Gate()
    places = Places.of(roots, roots.home / ".artoo")
    tools = builtin_tools(Shared.of(PlainWorkspace(roots), gate, places))
    box = Registry(tools, StillClock(), gate=gate, resumed=Resumed(before, gate)).toolbox("s", MustNot())
    return await box.call(name, arguments, Ticket(act, lambda departure: None))


@pytest.mark.parametrize(("name", "arguments"), CALLS, ids=[name for name, _ in CALLS])
async def test_a_call_in_the_workspace_that_was_cut_off_is_told_and_not_repeated(
    roots: Roots, name: str, arguments: dict[str, str]
) -> None:
    """What it had done stays; the model may make the same call again, and then it runs."""
    file = roots.project / "a.txt"
    file.write_text("a\n")
    before = past(CallEffects.STAGED)
    call = await in_workspace(roots, before, name, arguments, "s/1")
    assert (call.status, file.read_text()) == (CallStatus.INTERRUPTED, "a\n")
    assert "was under way when artoo was interrupted" in (call.reason or "")
    again = await in_workspace(roots, before, name, arguments, "s/2")
    assert (again.status, file.read_text() != "a\n") == (CallStatus.OK, True)


# --- answers ----------------------------------------------------------------------------------------------------


def request_of(digest: str, act: str = "", verb: str = "overwrite") -> ConfirmationRequest:
    return ConfirmationRequest(digest=digest, title=digest, act=act, acts=(AskedAct(verb=verb, target=digest),))


def answered(digest: str, consent: Consent, act: str = "", by: str = PERSON, verb: str = "overwrite") -> Consented:
    return request_of(digest, act, verb), ConfirmationAnswer(digest=digest, consent=consent, by=by)


async def asks(gate: Gate, digest: str, act: str, person: Person) -> bool:
    """Whether a question about this act reaches the person."""
    before = len(person.asked)

    async def kept() -> None:
        return

    call = UnderWay(Ticket(act, lambda departure: None), "", lambda: "", kept)
    with under_way(call):
        await gate.refusal(request_of(digest))
    return len(person.asked) > before


@pytest.mark.parametrize(
    "before",
    [
        past(CallEffects.OUTSIDE, consented=(answered("d", Consent.ONCE, "s/1"),)),
        past(CallEffects.STAGED, consented=(answered("d", Consent.ONCE, "s/1"),)),
        Past(ended=frozenset({"s/1"}), consented=(answered("d", Consent.ONCE, "s/1"),)),
        Past(consented=(answered("d", Consent.ONCE, ""),)),
        Past(consented=(answered("d", Consent.NO, "s/1", NOBODY),)),
        Past(consented=(answered("d", Consent.ONCE, "s/1", f"{POLICY}overwrite d"),)),
        Past(consented=(answered("d", Consent.TASK, "s/1", verb=AGAIN),)),
    ],
    ids=["outside", "in the workspace", "recorded", "no call", "nobody", "policy", "again"],
)
async def test_answers_that_are_used_up_or_were_nobodys_do_not_hold(before: Past) -> None:
    """An act that took effect has used its yes; nobody's no and a policy's yes are found again, or not."""
    person = Person([Consent.ONCE] * 9)
    gate = Gate(AskPerson(person))
    gate.restore(before)
    assert await asks(gate, "d", "s/1", person)
