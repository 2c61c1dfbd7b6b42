"""Which calls fell short, and which later calls make good what an earlier one did not do."""

from __future__ import annotations

import pytest

from artoo.contracts.conversation import ModelTurn, Returned, Said, Took
from artoo.contracts.events import ModelCalled
from artoo.contracts.execution import CallStatus, ToolCall, standing_failure
from artoo.contracts.roles import Role


def shell(command: str, **fields: object) -> ToolCall:
    """Return a call of the shell that ended well, unless `fields` say otherwise."""
    program = command.split()[0]
    found = {"tool": "shell", "identity": (f"shell:{program}",), "target": command, "input": command}
    return ToolCall.model_validate(found | fields)


FAILED = {"status": CallStatus.ERROR, "exit_code": 2}


@pytest.mark.parametrize(
    ("earlier", "later", "stands"),
    [
        (shell("git push", **FAILED), shell("git push"), 0),
        (shell("git push", **FAILED), shell("git status", output="clean"), 1),
        (shell("git push", **FAILED), shell("git push origin", output="done"), 0),
        (shell("git push", **FAILED), shell("touch a", changes=("/p/a",)), 0),
        (shell("git push", **FAILED), shell("git push", **FAILED), 2),
        (shell("cat a", **FAILED), shell("ls", output="b"), 0),
        (shell("sleep 9", status=CallStatus.RUNNING, process="p1"), shell("echo p1", output="p1"), 0),
        (shell("sleep 9", status=CallStatus.RUNNING, process="p1"), shell("echo p2", output="p2"), 1),
    ],
)
def test_a_later_call_makes_an_earlier_one_good(earlier: ToolCall, later: ToolCall, stands: int) -> None:
    """The same call again, one of the same kind, a change, any look for a look, and a word with a process."""
    assert standing_failure((earlier, later)) == stands


@pytest.mark.parametrize(
    ("call", "hidden"),
    [
        (shell("make", masked=True, error_output="Traceback (most recent call last):"), True),
        (shell("make", masked=True), False),
        (shell("make; echo ok", masked=True, output="ok"), True),
        (shell("grep -q x f || echo x >> f; cat f", masked=True, output="x"), False),
        (shell("make", masked=True, output="built", changes=("/p/a",)), False),
        (shell("make", output="built"), False),
        (shell("make", **FAILED), False),
    ],
)
def test_an_error_that_the_exit_code_hides_is_found(call: ToolCall, hidden: bool) -> None:
    """Where the command goes on after an error, what it printed tells."""
    assert bool(call.hidden_error) is hidden


def test_what_a_model_was_asked_is_what_was_added() -> None:
    """Of a conversation its new messages, without the model's own turns."""
    added = (
        Said(text="do it"),
        Took(turn=ModelTurn(text="yes")),
        Returned(call_id="1", name="shell", text="[1] ok"),
    )
    called = ModelCalled(
        role=Role.EXECUTOR, contract="ExecutorStep", tier="tool", model="m", system="", user="", added=added
    )
    assert called.asked == "do it\n\n[1] ok"


def test_a_call_failed_if_it_ran_and_did_not_end_well() -> None:
    """A refused call never ran, and a running one has not ended."""
    assert {status for status in CallStatus if status.failed} == {
        CallStatus.ERROR, CallStatus.TIMEOUT, CallStatus.INTERRUPTED,
    }  # fmt: skip
