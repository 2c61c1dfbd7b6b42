"""A line of artoo's own on standard error holds no secret, whatever it quotes."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec

import pytest
from click.testing import CliRunner

from artoo.cli.commands import sandbox_command
from artoo.cli.commands.mcp_command import mcp
from artoo.cli.commands.team.serve_command import a2a
from artoo.tools.core.tool import Outcome

QUOTED = "the store refuses api_key=abcd1234efgh"
SAID = "artoo: the store refuses api_key=[redacted]\n"


async def _serve(*given: object) -> None:
    say = given[-1]
    assert isinstance(say, Callable)
    say(QUOTED)


def test_a2a_says_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    """What becomes of its work as well as what goes wrong."""
    if find_spec("a2a") is None:
        pytest.skip("the library of A2A is not installed")
    monkeypatch.setattr("artoo.protocols.a2a.serving.serve", _serve)
    assert CliRunner().invoke(a2a, []).stderr == SAID


def test_mcp_says_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its standard output is the protocol's."""
    monkeypatch.setattr("artoo.protocols.mcp.serving.serve", _serve)
    ended = CliRunner().invoke(mcp, [])
    assert (ended.stdout, ended.stderr) == ("", SAID)


def test_a_single_commands_reason_holds_no_secret(capsys: pytest.CaptureFixture[str]) -> None:
    """What the command printed is the person's, and stays as it is."""
    said = getattr(sandbox_command, "_say")  # noqa: B009
    said(Outcome(error_output="password: hello\n", reason=QUOTED))
    assert capsys.readouterr().err == f"password: hello\n{SAID}"
