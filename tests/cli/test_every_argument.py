"""Every command with every argument: what a person mistypes costs a line, never a traceback, and stays at home."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from cli_standin import StandIn
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from artoo.cli.display import run_task as running
from artoo.cli.main import artoo, main

KNOWN = {0, 1, 2, 3, 4, 130}
ENDLESS = {("serve", "team"), ("serve", "web")}
"""They run until somebody stops them, or for long: here only with what they refuse."""
ELSEWHERE = {("model", "pull"), ("doctor",), ("sandbox",)}
"""They reach a network, or prove this machine's tiers: with their first argument empty."""

strange = st.one_of(
    st.sampled_from(
        [
            "",
            " ",
            ".",
            "..",
            "../x",
            "/",
            "~",
            "-",
            "--",
            "-1",
            "0",
            "1e999",
            "nan",
            "\x00",
            "\n",
            "\x1b[2J",
            "\u202e",
            "x" * 5_000,
        ]
    ),
    st.sampled_from(
        ["%s", "{}", "[", "*", "$(id)", "'", '"', "\ud800", "é" * 300, "../../etc/passwd", "a/b/c", "NUL"]
    ),
    st.text(max_size=12),
)


def leaves(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """All commands that do something, with their names."""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from leaves(below, (*path, name))
    else:
        yield path, command


COMMANDS = dict(leaves(artoo))


def values(parameter: click.Parameter) -> st.SearchStrategy[str]:
    """What a parameter takes, and what it does not."""
    if isinstance(parameter.type, click.Choice):
        return st.one_of(st.sampled_from([str(each) for each in parameter.type.choices]), strange)
    if isinstance(parameter.type, (click.types.IntParamType, click.types.FloatParamType)):
        return st.one_of(st.integers(-2, 3).map(str), strange)
    return strange


@st.composite
def lines(draw: st.DrawFn, path: tuple[str, ...]) -> list[str]:
    """A command line of this command."""
    words: list[str] = []
    for parameter in COMMANDS[path].params:
        given_one = draw(values(parameter))
        if isinstance(parameter, click.Argument):
            words += [given_one] if draw(st.booleans()) else []
        elif draw(st.integers(0, 3)) == 0:
            flag = isinstance(parameter, click.Option) and parameter.is_flag
            words += [parameter.opts[-1]] if flag else [parameter.opts[-1], given_one]
    if path in ENDLESS:
        words.append("--no-such-option")
    return [*path, *([""] if path in ELSEWHERE else []), *words]


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home and a project of one's own, and beside them what nobody may touch."""
    home = tmp_path / "person"
    (home / "project").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("ARTOO_HOME", str(home / ".artoo"))
    monkeypatch.chdir(home / "project")
    return home


@pytest.mark.torture
@pytest.mark.parametrize("path", sorted(COMMANDS), ids=" ".join)
def test_no_argument_makes_a_traceback(
    scratch: Path, path: tuple[str, ...], capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever a command is given: an exit code that the manual knows, no traceback, no defect, nothing outside."""
    if path != ("resume",):  # with no task to go on with it asks no model
        monkeypatch.setattr(running, "open_runtime", StandIn("accepted"))

    @settings(
        max_examples=6,
        deadline=None,
        suppress_health_check=(HealthCheck.function_scoped_fixture, HealthCheck.too_slow),
    )
    @given(lines(path))
    def holds(arguments: list[str]) -> None:
        code = main(arguments)
        said = "".join(capfd.readouterr())
        assert code in KNOWN, (arguments, code, said)
        assert "Traceback" not in said and "a defect in artoo" not in said, (arguments, said)
        assert names(scratch.parent) == ["outside", "person"], arguments
        assert names(scratch.parent / "outside") == [], arguments

    holds()
