"""Which words are commands, which are requests, and what errors cost."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest
from cli_standin import StandIn
from click.testing import CliRunner

from artoo.cli.commands.group import COMMANDS, SECTIONS, TopGroup
from artoo.cli.display import run_task as running
from artoo.cli.main import artoo, main
from artoo.contracts.errors import (
    ArtooError,
    ConfigurationError,
    ModelRefused,
    ModelUnreachable,
    ToolError,
)


@pytest.fixture
def standin(monkeypatch: pytest.MonkeyPatch) -> StandIn:
    """A runtime that accepts every request."""
    runtime = StandIn("accepted")
    monkeypatch.setattr(running, "open_runtime", runtime)
    return runtime


def asked(standin: StandIn) -> list[str]:
    """The requests that reached the runtime."""
    return [text for text, _, _ in standin.requests]


@pytest.mark.parametrize(
    ("arguments", "request_text"),
    [
        (["how many files are in src?"], "how many files are in src?"),
        (["--json", "count them"], "count them"),
        (["count", "them", "--json"], "count them"),
        (["run", "--", "--help", "is", "what?"], "--help is what?"),
        (["models", "of", "the", "world"], "models of the world"),
        (["modle", "the", "world"], "modle the world"),
        (["run", "modle"], "modle"),
        (["统计文件"], "统计文件"),
    ],
)
def test_what_is_no_command_is_a_request(standin: StandIn, arguments: list[str], request_text: str) -> None:
    """Free text reaches the runtime word for word, with or without `run`."""
    assert main(arguments) == 0
    assert asked(standin) == [request_text]


@pytest.mark.parametrize(
    "arguments",
    [
        ["modle"],
        ["modle", "list"],
        ["doctro", "--json"],
        ["agnet", "show", "bob"],
        ["--project", ".", "agnet", "show", "bob"],
    ],
)
def test_a_misspelt_command_is_a_usage_error(
    standin: StandIn, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """What is nearly a command, alone or with a part of it, is not sent to a model; the command is suggested."""
    assert main(arguments) == 2
    assert asked(standin) == []
    assert "Did you mean" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [["--json", "status"], ["-v", "--session=s", "undo"]],
)
def test_an_option_before_a_commands_name_makes_no_request_of_it(
    standin: StandIn, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Scripts write `--json` first; a model that is asked for "status" answers something, with exit code 0."""
    assert main(arguments) == 2
    assert asked(standin) == []
    assert "is a command; a command's options stand after its name" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments", [["--json", "--", "status"], ["run", "--json", "status"], ["--session=log", "x"]]
)
def test_such_a_request_can_be_made_all_the_same(standin: StandIn, arguments: list[str]) -> None:
    """After `--` or `run` everything is a request; the value of an option is no word of it."""
    assert main(arguments) == 0
    assert asked(standin) == [arguments[-1]]


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["run"],
        ["--no-such-option"],
        ["run", " "],
        ["run", "--project", "/nowhere", "x"],
        ["run", "--workspace", "", "x"],
        ["run", "--model", "", "x"],
    ],
)
def test_usage_errors_end_with_2(standin: StandIn, arguments: list[str]) -> None:
    """Nothing is started for a command line that cannot be meant."""
    assert CliRunner().invoke(artoo, arguments, input="").exit_code == 2
    assert asked(standin) == []


def test_without_terminal_or_text_there_is_nothing_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    """`artoo` with a pipe as its input says how to give it a request."""
    assert main([]) == 2
    assert "artoo run -" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConfigurationError("wrong"), 2),
        (ModelUnreachable("gone"), 3),
        (ModelRefused("no", status=401), 3),
        (ToolError("broken"), 1),
        (ExceptionGroup("several", [ExceptionGroup("inner", [ModelUnreachable("gone")])]), 3),
    ],
)
def test_errors_become_messages_and_exit_codes(
    error: ArtooError | ExceptionGroup[ArtooError],
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Every error that artoo raises on purpose ends in one line on stderr, not in a traceback."""

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(running, "open_runtime", fail)
    assert main(["do something"]) == code
    captured = capsys.readouterr()
    assert captured.err.startswith("artoo: ")
    assert "Traceback" not in captured.err


def test_a_mistake_of_ours_is_not_hidden(
    home: object, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An error that nobody foresaw is a line for the person; its traceback is in the file that it names."""

    def fail(*_: object) -> None:
        raise ExceptionGroup("several", [ToolError("known"), ZeroDivisionError()])

    monkeypatch.setattr(running, "open_runtime", fail)
    assert main(["do something"]) == 1
    said = capsys.readouterr().err
    assert "Traceback" not in said and said.startswith("artoo: a defect in artoo, ExceptionGroup")
    assert "ZeroDivisionError" in Path(said.partition("stands in ")[2].partition(";")[0]).read_text(
        encoding="utf-8"
    )


def test_what_fails_on_the_way_is_a_line_as_well(
    home: object, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A warning is its own words; a defect that ends nothing names its kind and the file with its traceback."""

    def go_on(*_: object) -> None:
        logger = logging.getLogger("artoo.somewhere")
        logger.warning("that is %s", "odd")
        try:
            int("")
        except ValueError:
            logger.exception("the dialogue failed")
        raise ToolError("known")

    monkeypatch.setattr(running, "open_runtime", go_on)
    assert main(["do something"]) == 1
    warning, defect, error = capsys.readouterr().err.splitlines()
    assert warning == "that is odd" and error == "artoo: known"
    assert defect.startswith("the dialogue failed (a defect in artoo, ValueError: ")
    assert "go_on" in Path(defect.partition("stands in ")[2].partition(";")[0]).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["../x", "", "-x", "a\u3164"])
def test_a_letter_to_nobodys_name_is_refused_in_words(
    home: object, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever stands where a name belongs: a sentence, and no traceback."""
    assert main(["mail", "send", "--", name, "hi"]) != 0
    said = capsys.readouterr().err
    assert said and "Traceback" not in said and "defect" not in said


def test_configuration_errors_are_shown_with_their_line(
    home: object, tmp_path: object, capsys: pytest.CaptureFixture[str]
) -> None:
    """A request with a broken configuration ends with 2 and names file, line and column."""
    from pathlib import Path

    assert isinstance(home, Path)
    home.mkdir()
    (home / "config.yaml").write_text("control:\n  delat: 0.2\n")
    assert main(["do something"]) == 2
    assert f"{home}/config.yaml:2:3: control.delat is not a setting; did you mean delta?" in capsys.readouterr().err


def test_a_broken_file_is_named_and_not_set(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`artoo config set` says where it is broken, as every command does, and leaves it."""
    home.mkdir()
    (home / "config.yaml").write_text("control: [\n")
    assert main(["config", "set", "control.delta", "0.2"]) == 2
    said = capsys.readouterr().err
    assert f"{home}/config.yaml:2:1: not valid YAML" in said
    assert "defect" not in said
    assert (home / "config.yaml").read_text() == "control: [\n"


def test_every_mounted_command_can_be_loaded() -> None:
    """The table names modules and attributes that exist, and its summaries are those of the commands."""
    assert isinstance(artoo, TopGroup)
    context = click.Context(artoo)
    for name in COMMANDS:
        assert artoo.get_command(context, name) is not None


def test_help_lists_the_commands_and_imports_nothing_heavy() -> None:
    """`artoo --help` needs neither Pydantic nor the runtime."""
    program = (
        "import sys; from artoo.cli.main import main; code = main(['--help']);"
        "heavy = {'pydantic', 'rich', 'aiohttp', 'asyncio', 'yaml', 'prompt_toolkit',"
        " 'artoo.runtime.config.model'};"
        "print(sorted(heavy & set(sys.modules))); sys.exit(code)"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    listed = {name for table in SECTIONS.values() for name in table}
    assert len(listed) <= 30
    assert all(f"  {name} " in ended.stdout for name in listed)
    assert not any(f"  {name} " in ended.stdout for name in COMMANDS if name not in listed)
    assert ended.stdout.splitlines()[-1] == "[]"


def test_version_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """`--version` prints the installed version, with the commit of the sources that run."""
    assert main(["--version"]) == 0
    asked = ["git", "-C", Path(__file__).parent, "rev-parse", "--short=12", "HEAD"]
    commit = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
    said = capsys.readouterr().out.strip()
    assert said.startswith("artoo 0.") and said.endswith(f" ({commit})" if commit else "")


def test_a_reader_that_went_away_is_no_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    """`artoo … | head` ends quietly with 130, however deep in groups of tasks the write failed."""

    def fail(**_: object) -> int:
        raise BaseExceptionGroup("outer", [ExceptionGroup("inner", [BrokenPipeError()])])

    monkeypatch.setattr(artoo, "main", fail)
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w", encoding="utf-8") as nobody_reads:
        monkeypatch.setattr(sys, "stdout", nobody_reads)
        assert main(["--json", "x"]) == 130
        print("what is left is flushed without a complaint")


@pytest.mark.parametrize("arguments", [["run", "hi"], ["sandbox", "--", "true"], ["sandbox", "--", "pwd"]])
def test_a_deleted_working_directory_ends_with_2(tmp_path: Path, arguments: list[str]) -> None:
    """It is the caller's mistake, and the sentence says so."""
    gone = tmp_path / "gone"
    gone.mkdir()
    script = f'rmdir {gone}; exec "$0" -m artoo "$@"'
    argv = ["sh", "-c", script, sys.executable, *arguments]
    done = subprocess.run(argv, cwd=gone, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "the current directory does not exist any more; change to another one" in done.stderr


@pytest.mark.parametrize(("words", "needs"), [(("serve",), "--web"), (("mcp",), "--http")])
def test_a_port_of_nothing_is_refused(
    words: tuple[str, ...], needs: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without what opens it nobody would answer there, and nothing said so."""
    assert main([*words, "--port", "7300"]) == 2
    assert f"add {needs}" in capsys.readouterr().err
    assert not home.exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a file that is always full")
@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_full_disk_under_an_output_is_no_traceback(stream: str, home: Path) -> None:
    """It is said in a line, if anywhere; the code is one of artoo's, and not the 120 that Python ends with."""
    words = {"stdout": ["version"], "stderr": ["log", "show", "nix"]}[stream]
    with Path("/dev/full").open("wb") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "artoo", *words],
            stdin=subprocess.DEVNULL,
            stdout=full if stream == "stdout" else subprocess.PIPE,
            stderr=full if stream == "stderr" else subprocess.PIPE,
            env={**os.environ, "ARTOO_HOME": str(home), "PYTHONUNBUFFERED": ""},
            text=True,
            check=False,
        )
    if stream == "stderr":
        assert ended.returncode == 2
    else:
        assert (ended.returncode, ended.stderr.count("\n")) == (1, 1)
        assert ended.stderr.startswith("artoo: standard output: No space left on device")


@pytest.mark.parametrize("deep", [False, True])
def test_what_the_system_refuses_is_a_message(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], deep: bool
) -> None:
    """A read-only home or a full disk ends with 1 and names path and reason, without a traceback."""
    refusal = OSError(30, "Read-only file system", "/ro/home")

    def fail(**_: object) -> int:
        raise ExceptionGroup("outer", [ExceptionGroup("inner", [refusal])]) if deep else refusal

    monkeypatch.setattr(artoo, "main", fail)
    assert main(["x"]) == 1
    assert "/ro/home: Read-only file system" in capsys.readouterr().err


def test_an_argument_that_is_no_utf8_reaches_the_runtime_as_text(standin: StandIn) -> None:
    """Bytes that the locale cannot decode come as surrogates; UTF-8 among them is read, the rest is written out."""
    chinese = "统计".encode().decode("ascii", "surrogateescape")
    assert main(["run", f"{chinese} caf\udce9"]) == 0
    assert asked(standin) == ["统计 caf\\xe9"]


def test_a_terminal_without_utf8_is_no_crash() -> None:
    """With an ASCII terminal, characters that it lacks are shown as `?`."""
    program = "import sys; from artoo.cli.main import main; sys.exit(main(['memory']))"
    environ = {**os.environ, "PYTHONIOENCODING": "ascii:strict"}
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environ, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("closed", ["stdin", "stdout", "stderr"])
def test_closed_standard_streams_are_no_crash(
    standin: StandIn, monkeypatch: pytest.MonkeyPatch, closed: str
) -> None:
    """A request is done also where a service starts artoo with a standard stream closed."""
    monkeypatch.setattr(sys, closed, None)
    assert main(["run", "count them"]) == 0
    assert asked(standin) == ["count them"]
    opened = getattr(sys, closed)
    opened.close()
