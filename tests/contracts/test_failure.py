"""Why a call failed, by its record and by the system's own error texts."""

from __future__ import annotations

import errno
import os

import pytest

from artoo.contracts.execution import ToolCall, identities_of
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
        ({"status": "error", "exit_code": 127, "error_output": "x: libx.so: No such file or directory"}, False),
    ],
)
def test_a_calls_record_says_what_was_lacking(record: dict[str, object], environmental: bool) -> None:
    """Cut off and kept back are the world's doing, a refusal is the call's; else the error texts say it."""
    call = ToolCall.model_validate({"tool": "shell", "identity": ("shell",)} | record)
    assert call.failure_class is (FailureClass.ENVIRONMENTAL if environmental else FailureClass.LOGICAL)
    assert call.met_the_world == (environmental and call.status != "ok")


@pytest.mark.parametrize(
    ("record", "lines"),
    [
        ({"status": "error", "reason": "there is no a.txt; similar names: b.txt"}, ("there is no a.txt",)),
        (
            {"status": "error", "output": "one\ncat: a: No such file or directory\n"},
            ("cat: a: No such file or directory",),
        ),
        ({"status": "error", "error_output": "Permission denied"}, ()),
        ({"status": "ok", "error_output": "cat: a: No such file or directory"}, ()),
    ],
)
def test_the_lines_that_tell_of_a_missing_file(record: dict[str, object], lines: tuple[str, ...]) -> None:
    """Of a call that failed, by the system's own words or artoo's; not what else is told beside it."""
    call = ToolCall.model_validate({"tool": "shell", "identity": ("shell",)} | record)
    assert call.absences == lines


def test_a_file_alone_may_be_nobodys_lack() -> None:
    """Who looks at finished work says what a file's absence is; all else that is lacking stays the world's."""
    gone, denied = "a: No such file or directory", "b: Permission denied"
    assert failure_class(gone, absence=FailureClass.LOGICAL) is FailureClass.LOGICAL
    assert failure_class(f"{gone}\n{denied}", absence=FailureClass.LOGICAL) is FailureClass.ENVIRONMENTAL


@pytest.mark.parametrize("code", [errno.ENOENT, errno.EACCES, errno.ENOSPC, errno.ECONNREFUSED])
def test_the_systems_texts_say_something_of_the_world(code: int) -> None:
    """In whatever case a program prints them."""
    assert failure_class(f"x: {os.strerror(code).upper()}!") is FailureClass.ENVIRONMENTAL


@pytest.mark.parametrize("code", [errno.EINVAL, errno.EISDIR, errno.EEXIST])
def test_a_call_that_was_made_wrongly_is_logical(code: int) -> None:
    """A directory where a file was wanted is no fault of the world."""
    assert failure_class(f"x: {os.strerror(code)}") is FailureClass.LOGICAL


def test_the_identities_of_calls_are_told_once_in_their_order() -> None:
    """A call may have several, and calls may share them."""
    calls = [
        ToolCall.model_validate({"tool": "shell", "identity": identity})
        for identity in (("shell:cat", "shell:wc"), ("read_file",), ("shell:wc",))
    ]
    assert list(identities_of(calls)) == ["shell:cat", "shell:wc", "read_file"]
