"""The words beside requests: help, version, config, mcp, completion; conversations that are taken up again."""

from __future__ import annotations

import json
import os
import stat
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml
from cli_process import artoo, model_at
from cli_terminal import CTRL_C, terminal
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from artoo.cli.conversation.completion import ConversationCompleter
from artoo.cli.conversation.conversation_hints import typed
from artoo.cli.main import main
from artoo.contracts.envelope import Envelope
from artoo.contracts.errors import ConfigurationError
from artoo.contracts.request import UserRequest
from artoo.contracts.roles import Role
from artoo.contracts.solution import Directive, FinalResult, StoppedBy
from artoo.runtime.task.conversations import MOST_KEPT, TURNS, open_session
from artoo.settings.yaml_edit import with_value
from artoo.testing import Script, ScriptedServer, with_body
from artoo.words.result import result_words


def said(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """The exit code and both outputs of `artoo WORDS`."""
    code = main(words)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.mark.usefixtures("home")
def test_help_and_version_are_no_requests(capsys: pytest.CaptureFixture[str]) -> None:
    """They answer at once; help goes down to subcommands, and what is no command is a mistake."""
    assert said(capsys, "version")[1].startswith("artoo ")
    assert "Changes:" in said(capsys, "help")[1]
    assert said(capsys, "help", "config", "set")[1].startswith("Usage: artoo config set")
    code, _, err = said(capsys, "help", "me")
    assert code == 2
    assert "no command 'me'" in err


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
@pytest.mark.usefixtures("home")
def test_completion_is_printed_for_a_shell(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The program asks artoo itself what there is."""
    code, out, _ = said(capsys, "completion", shell)
    assert code == 0
    assert f"_ARTOO_COMPLETE={shell}_complete" in out


def test_one_setting_is_changed_in_its_place(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Comments stay, the value is in effect, and what would be a mistake is refused and changes nothing."""
    assert said(capsys, "init")[0] == 0
    before = (home / "config.yaml").read_text()
    assert said(capsys, "config", "set", "limits.subtasks", "5")[0] == 0
    after = (home / "config.yaml").read_text()
    changed = [
        (one, other) for one, other in zip(before.splitlines(), after.splitlines(), strict=True) if one != other
    ]
    assert len(changed) == 1
    assert changed[0][1].strip().startswith("subtasks: 5  ")
    assert said(capsys, "config", "get", "limits.subtasks")[1] == "5\n"
    code, _, err = said(capsys, "config", "set", "limits.cals", "44")
    assert code == 2
    assert "limits.cals is not a setting" in err
    for key in ("limits..calls", '"limits.calls', "limits."):
        code, _, err = said(capsys, "config", "set", key, "7")
        assert code == 2 and "names no setting" in err, key
    code, _, err = said(capsys, "config", "set", "limits.calls", "-3")
    assert code == 2 and "limits.calls" in err and "No such option" not in err
    assert (home / "config.yaml").read_text() == after
    assert said(capsys, "config", "path")[1].strip() == str(home / "config.yaml")


@pytest.mark.parametrize(
    ("text", "key", "expected"),
    [
        ("", "limits.calls", "limits:\n  calls: 7\n"),
        ("# only words\n", "apply", "# only words\napply: 7\n"),
        ("limits:\n  subtasks: 3 # few\n", "limits.calls", "limits:\n  calls: 7\n  subtasks: 3 # few\n"),
        ("limits: {}\napply: new\n", "limits.calls", "limits:\n  calls: 7\napply: new\n"),
        ("limits:\napply: new\n", "limits.calls", "limits:\n  calls: 7\napply: new\n"),
        ("apply: new  # as it is\n", "apply", "apply: 7  # as it is\n"),
        ("mcp_servers: {}  # none\napply: new\n", "mcp_servers", "mcp_servers: 7  # none\napply: new\n"),
    ],
)
def test_a_value_finds_its_place(text: str, key: str, expected: str) -> None:
    """In a file without it, in a section that is there, that is empty, or for the value that stood there."""
    assert with_value(text, key.split("."), 7) == expected


def test_a_name_with_dots_stands_in_quotes(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As those of models do; without quotes each dot leads further in."""
    price = 'prices.models."gpt-4.1"'
    assert said(capsys, "config", "set", price, "{prompt: 2, completion: 8}")[0] == 0
    assert said(capsys, "config", "set", f"{price}.prompt", "3")[0] == 0
    assert said(capsys, "config", "get", f"{price}.prompt")[1] == "3.0\n"
    written = yaml.safe_load((home / "config.yaml").read_text())
    assert written["prices"]["models"] == {"gpt-4.1": {"prompt": 3, "completion": 8}}
    code, _, err = said(capsys, "config", "set", "mcp_servers", "notes")
    assert code == 2
    assert "mcp_servers is 'notes', but must be" in err


LISTS = "allow:\n  - a\n  - b\n# about apply\napply: new\n"


def test_a_long_text_stands_on_one_line() -> None:
    """A path with blanks that is longer than a line, in a section too."""
    path = "/home/Ann Example/Library/Mobile Documents/com~apple~CloudDocs/" + "a long folder name/" * 4
    text = with_value("memory:\n  enabled: true\n", ("memory", "path"), path)
    assert text.count("\n") == 3
    assert yaml.safe_load(text) == {"memory": {"enabled": True, "path": path}}


@pytest.mark.parametrize(
    ("text", "instead"),
    [
        (LISTS, "allow: 7\n# about apply\napply: new\n"),
        ("allow:  # mine\n- a\n- b\napply: new\n", "allow: 7  # mine\napply: new\n"),
        ("allow:\n- a", "allow: 7"),
        ("allow: |\n  a\n  b\napply: new\n", "allow: 7\napply: new\n"),
    ],
)
def test_a_value_in_lines_ends_with_its_last_line(text: str, instead: str) -> None:
    """For the parser it reaches to the next setting: that one, and what is written about it, stays."""
    assert with_value(text, ["allow"], 7) == instead


def test_an_alias_is_not_written_into() -> None:
    """What would change is the value that it stands for, somewhere else in the file."""
    with pytest.raises(ConfigurationError, match="alias"):
        with_value("apply: &how new\nallow: *how\n", ["allow"], 7)


def test_a_section_is_no_value() -> None:
    """Neither can it be overwritten, nor a value be gone into."""
    with pytest.raises(ConfigurationError, match="is a section"):
        with_value("limits:\n  calls: 3\n", ["limits"], 7)
    with pytest.raises(ConfigurationError, match="apply is a value"):
        with_value("apply: new\n", ["apply", "calls"], 7)


def test_servers_are_added_listed_and_removed(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Into mcp.json, for its owner only; values of variables are not shown; what else is in the file stays."""
    home.mkdir()
    (home / "mcp.json").write_text(json.dumps({"mcpServers": {}, "other": 1}))
    assert said(capsys, "mcp", "add", "notes", "--env", "KEY=secret", "--", "notes-mcp", "--fast")[0] == 0
    listed = said(capsys, "mcp", "list")[1]
    assert "notes: notes-mcp --fast KEY=…" in listed
    assert "secret" not in listed
    assert json.loads((home / "mcp.json").read_text())["other"] == 1
    assert stat.S_IMODE((home / "mcp.json").stat().st_mode) == 0o600
    assert said(capsys, "mcp", "add", "notes", "--url", "http://127.0.0.1/mcp")[0] == 2
    assert said(capsys, "mcp", "remove", "notes")[0] == 0
    assert said(capsys, "mcp", "remove", "notes")[0] == 2


@pytest.mark.usefixtures("home")
def test_a_server_is_tried(capsys: pytest.CaptureFixture[str]) -> None:
    """Its tools are named; one that does not answer is told with exit code 1."""
    server = Path(__file__).parents[1] / "tools" / "mcp_server.py"
    assert said(capsys, "mcp", "add", "good", "--", sys.executable, str(server))[0] == 0
    code, out, _ = said(capsys, "mcp", "test")
    assert (code, out.startswith("good: ")) == (0, True), out
    assert said(capsys, "mcp", "add", "bad", "--", sys.executable, "-c", "pass")[0] == 0
    code, out, _ = said(capsys, "mcp", "test", "bad")
    assert code == 1
    assert "bad: " in out
    assert said(capsys, "mcp", "add", "gone", "--", "no-such-server")[0] == 0
    code, out, _ = said(capsys, "mcp", "test", "gone")
    assert code == 1
    assert out.startswith("the MCP server gone: it cannot be started: no-such-server is not on your PATH")


def test_a_conversation_is_taken_up_again(tmp_path: Path) -> None:
    """By its name, or the latest; the last exchanges are there, and cleared ones are not."""
    with pytest.raises(ConfigurationError, match="no conversation"):
        open_session(tmp_path, latest=True)
    first = open_session(tmp_path, name="trip")
    for number in range(TURNS + 2):
        first.add(f"request {number}", "done", f"task-{number}")
    again = open_session(tmp_path, name="trip")
    assert [turn.input for turn in again.turns] == [f"request {number}" for number in range(2, TURNS + 2)]
    assert open_session(tmp_path, latest=True).turns == again.turns
    assert open_session(tmp_path).turns == ()
    again.clear()
    assert open_session(tmp_path, name="trip").turns == ()
    with pytest.raises(ConfigurationError, match="cannot name a session"):
        open_session(tmp_path, name="../out")


def test_the_last_conversation_is_the_last_of_its_project(tmp_path: Path) -> None:
    """Another project's is named where there is none here; what is older than that note belongs to any."""
    here, there = tmp_path / "here", tmp_path / "there"
    for number, where in enumerate((here, there)):
        where.mkdir()
        asked = UserRequest(text="x", project=str(where), workspace=str(where))
        talk = open_session(tmp_path, name=where.name)
        talk.noting("x")(Envelope("m", Role.USER, "t", datetime.now(UTC), asked))
        talk.add("x", "done", "t")
        os.utime(tmp_path / "sessions" / f"{where.name}.jsonl", (number, number))
    assert open_session(tmp_path, latest=True, project=here).name == "here"
    (tmp_path / "sessions" / "here.jsonl").unlink()
    with pytest.raises(ConfigurationError, match=r"in .*/here to continue yet .*/there: artoo --session there\)"):
        open_session(tmp_path, latest=True, project=here)
    open_session(tmp_path, name="older").add("x", "done", "t")
    assert open_session(tmp_path, latest=True, project=here).name == "older"


def test_a_conversation_keeps_what_the_person_was_told(tmp_path: Path) -> None:
    """In words, without the signs that letters and logs have."""
    signs = "\u25a0 missing_input: no address"
    result = FinalResult(task_id="t", summary=signs, output="", directive=Directive.ABANDON, detail="no address")
    result = result.model_copy(update={"stopped_by": StoppedBy.MISSING_INPUT})
    session = open_session(tmp_path, name="trip")
    session.add_result("Write to her", result)
    (turn,) = session.turns
    assert "no address" in turn.summary and "\u25a0" not in turn.summary and "missing_input" not in turn.summary


def test_a_conversation_keeps_no_hint_for_a_terminal(tmp_path: Path) -> None:
    """It is shown to models later, which can type nothing; what one of them suggested is kept."""
    result = FinalResult(task_id="t", summary="Which?", output="Which one?", directive=Directive.ABANDON)
    result = result.model_copy(update={"stopped_by": StoppedBy.QUESTION})
    session = open_session(tmp_path, name="trip")
    assert "artoo -c" in result_words("en").plain(result, typed())
    session.add_result("Delete it", result)
    assert "Which one?" in session.turns[0].summary and "You could" not in session.turns[0].summary
    session.add_result("Delete it", result.model_copy(update={"next_moves": ("name the file",)}))
    assert "name the file" in session.turns[0].summary


def test_old_conversations_are_forgotten(tmp_path: Path) -> None:
    """A bound on how many are kept."""
    for number in range(MOST_KEPT + 3):
        open_session(tmp_path, name=f"s{number}").add("x", "y", "t")
        os.utime(tmp_path / "sessions" / f"s{number}.jsonl", (number, number))
    open_session(tmp_path, name="last").add("x", "y", "t")
    assert len(list((tmp_path / "sessions").glob("*.jsonl"))) == MOST_KEPT


@pytest.mark.usefixtures("project")
async def test_a_request_goes_on_from_an_earlier_one_with_another_model() -> None:
    """`--session` and `--continue` give the model what was said; `--model` names it to the server."""
    criterion = {"text": "there is an answer", "check": {"check": "output_matches", "regex": "forty"}}
    plan = {"subtasks": [{"intent": "say", "tool": "shell", "success_criteria": [criterion]}]}
    step = with_body({"tool": "shell", "is_final": True}, "echo forty")
    spec = {"task_id": "once_more", "intent": "say a number once more"}
    script: Script = {"TaskSpec": spec, "Plan": [plan, plan], "ExecutorStep": [step, step]}
    async with ScriptedServer(script) as server:
        for words in (("--session", "trip", "say a number"), ("--continue", "--model", "other", "and once more")):
            code, _, err = await artoo("run", "--no-memory", *words, environ=model_at(server))
            assert code == 0, err
        [last] = server.player.of("TaskSpec")
        steps = server.player.of("ExecutorStep")
    assert "say a number" in last.system + last.user
    assert last.body["model"] == "other"
    assert steps[-1].body["model"] == "other"


def completions(home: Path, line: str) -> list[str]:
    """What Tab offers at the end of a line."""
    return [each.text for each in ConversationCompleter(home).get_completions(Document(line), CompleteEvent())]


def test_commands_tasks_and_files_are_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each where it may stand."""
    (tmp_path / "tasks" / "0198aaaa-1111").mkdir(parents=True)
    (tmp_path / "tasks" / "0198bbbb-1111").mkdir()
    (tmp_path / "notes.txt").touch()
    monkeypatch.chdir(tmp_path)
    assert completions(tmp_path, "/un") == ["undo"]
    assert completions(tmp_path, "/undo ") == ["0198bbbb-1111", "0198aaaa-1111"]
    assert completions(tmp_path, "/undo 0198a") == ["0198aaaa-1111"]
    assert completions(tmp_path, "count the lines of not") == ["es.txt"]


def test_a_second_interrupt_on_an_empty_line_leaves(tmp_path: Path) -> None:
    """The first one empties the line and says nothing."""
    with terminal("accepted", [], tmp_path) as screen:
        screen.wait_for("artoo>")
        for _ in range(2):
            screen.wait_for_prompt()
            screen.send(CTRL_C)
        assert screen.end() == 0
