"""Why a call failed, by its record and by the system's own error texts."""

from __future__ import annotations

import errno
import os

import pytest

from artoo.contracts.execution import ToolCall
from artoo.contracts.failure import FailureClass, failure_class


@pytest.mark.parametrize(
    ("record", "environmental"),
    [
        ({"status": "timeout"}, True),
        ({"status": "interrupted"}, True),
        ({"status": "refused", "withheld_by": "nobody"}, True),
        ({"dropped": ("a.txt",)}, True),
        ({"status": "refused", "reason": "Permission denied"}, False),
        ({"status": "error", "reason": "there is no /a/b"}, True),
        ({"status": "error", "error_output": "cat: a: No such file or directory"}, True),
        ({"status": "error", "output": "curl: Connection refused"}, True),
        ({"status": "error", "exit_code": 2, "error_output": "usage: x"}, False),
    ],
)
def test_a_calls_record_says_what_was_lacking(record: dict[str, object], environmental: bool) -> None:
    """Cut off and kept back are the world's doing, a refusal is the call's; else the error texts say it."""
    call = ToolCall.model_validate({"tool": "shell", "identity": ("shell",)} | record)
    assert call.failure_class is (FailureClass.ENVIRONMENTAL if environmental else FailureClass.LOGICAL)


@pytest.mark.parametrize("code", [errno.ENOENT, errno.EACCES, errno.ENOSPC, errno.ECONNREFUSED])
def test_the_systems_texts_say_something_of_the_world(code: int) -> None:
    """In whatever case a program prints them."""
    assert failure_class(f"x: {os.strerror(code).upper()}!") is FailureClass.ENVIRONMENTAL


@pytest.mark.parametrize("code", [errno.EINVAL, errno.EISDIR, errno.EEXIST])
def test_a_call_that_was_made_wrongly_is_logical(code: int) -> None:
    """A directory where a file was wanted is no fault of the world."""
    assert failure_class(f"x: {os.strerror(code)}") is FailureClass.LOGICAL
