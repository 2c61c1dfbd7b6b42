"""`artoo agent|task|mail|status|serve`: the team's books from the command line, whether or not anybody works."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from artoo.agents.heartbeat.ledger import Beat
from artoo.agents.patrol.store import PatrolStore
from artoo.cli.commands.team.mail_command import BOXES
from artoo.cli.commands.team.serve_command import line_of, told
from artoo.cli.main import main
from artoo.cli.views.team_view import record_line
from artoo.contracts.agents import BoardState, PatrolRefused, TaskMoved
from artoo.contracts.envelope import Envelope
from artoo.contracts.roles import Role
from artoo.runtime.config.loader import load_config
from artoo.team.locks import only_instance
from artoo.team.office import open_office

Run = Callable[..., "Ended"]


class Ended:
    """What a command said, and its exit code."""

    def __init__(self, code: int, output: str, errors: str) -> None:
        self.code = code
        self.output = output
        self.errors = errors

    @property
    def json(self) -> Any:
        return json.loads(self.output)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own, and a project to be in."""
    monkeypatch.setenv("ARTOO_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "80")
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path / "home"


@pytest.fixture
def run(home: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """`run("task", "list")`."""

    def call(*words: str) -> Ended:
        capsys.readouterr()
        code = main(list(words))
        said = capsys.readouterr()
        return Ended(code, said.out, said.err)

    return call


def test_agents(run: Run) -> None:
    """An agent is made, listed, trusted, paused, resumed; each change is told."""
    assert run("agent", "new", "ada", "--role", "clerk", "--must-not", "shell:curl").code == 0
    assert run("agent", "trust", "ada", "senior").code == 0
    assert run("agent", "pause", "ada").code == 0
    listed = run("agent", "list", "--json").json
    assert listed == {
        "agents": [{"name": "ada", "trust": "senior", "state": "paused", "detail": ""}],
        "problems": [],
    }
    assert run("agent", "resume", "ada").code == 0
    shown = run("agent", "show", "ada", "--json").json
    assert shown["role"] == "clerk" and shown["must_not"] == ["shell:curl"] and shown["accepted"]
    assert "ada, clerk (senior, ready)" in run("agent", "show", "ada").output


def test_tasks(run: Run) -> None:
    """A task is added, changed, moved to its end, and its history names everybody."""
    run("agent", "new", "ada")
    made = run("task", "add", "count", "the", "files", "--to", "ada", "--complexity", "simple", "--json").json
    assert made["text"] == "count the files" and made["project"] == str(Path.cwd())
    beginning = made["id"][:13]
    assert run("task", "move", beginning, "--priority", "critical", "--to", "anybody").code == 0
    (listed,) = run("task", "list", "--json").json
    assert listed["priority"] == "critical" and listed["assignee"] is None
    assert run("task", "move", beginning, "cancelled", "not", "needed").code == 0
    assert "cancelled by operator: not needed" in run("task", "show", beginning).output
    assert run("task", "move", beginning, "archived").code == 0
    assert run("task", "list", "--json").json == []
    log = run("task", "log", beginning, "--json").json
    moves = [(one["before"], one["after"], one["actor"]) for one in log if one["kind"] == "TaskMoved"]
    assert moves == [
        (None, "pending", "operator"),
        ("pending", "cancelled", "operator"),
        ("cancelled", "archived", "operator"),
    ]
    assert "not needed" in run("task", "log", beginning).output
    assert "count the files" in run("task", "show", beginning).output


def test_letters(run: Run) -> None:
    """A letter is sent, listed where it lies, and read."""
    run("agent", "new", "ada")
    sent = run("mail", "send", "ada", "hello", "--json").json
    assert [one["id"] for one in run("mail", "list", "--of", "ada", "--json").json] == [sent["id"]]
    assert [one["partition"] for one in run("mail", "list", "--box", "sent", "--json").json] == ["inbox"]
    assert "hello" in run("mail", "read", sent["id"][:13]).output
    run("mail", "send", "operator", "one")
    noted = run("mail", "send", "operator", "two", "--json").json["id"]
    shown = run("mail", "read", "--all").output
    assert "\none\n" in shown and "\ntwo\n" in shown and "2 in your archive now" in shown
    assert run("mail", "list", "--json").json == []
    assert "archive: read" in run("mail", "read", noted).output
    assert run("mail", "read").code == run("mail", "read", noted, "--all").code == 2
    unanswered = run("mail", "send", "ada", "and?", "--wait", "0")
    assert unanswered.code == 1 and "no process serves the team: artoo serve" in unanswered.errors


def test_status(run: Run, home: Path) -> None:
    """Whether anybody works, who there is, and what waits."""
    run("agent", "new", "ada")
    run("task", "add", "x", "--to", "ada")
    found = run("status", "--json").json
    assert found["serving"] is None and found["tasks"] == {"pending": 1}
    assert found["agents"][0]["name"] == "ada"
    with only_instance(home):
        assert "the team works (process" in run("status").output


def test_status_names_what_nobody_else_can_move_on(run: Run, home: Path) -> None:
    """The operator's own tasks, and folders that are no agent, show in the status: nothing waits unseen."""
    run("agent", "new", "ada")
    (home / "agents" / "eve").mkdir()
    task = run("task", "add", "look at the plans", "--to", "operator", "--json").json["id"]
    found = run("status", "--json").json
    assert [(one["id"], one["why"]) for one in found["waiting_for_you"]] == [(task, "is yours to do")]
    assert any("identity.yaml" in problem for problem in found["problems"])
    assert f"{task[:13]} is yours to do: look at the plans" in run("status").output


def test_status_says_why_no_pulse_is_held(run: Run, home: Path) -> None:
    """Once for all whom one reason stops: a key that is refused is mended by nobody but the person."""
    for name in ("ada", "bob", "cyd"):
        run("agent", "new", name)
    why = "backing off until 14:32 UTC, after 3 in a row: no model: HTTP 401: check BRAIN_API_KEY"

    async def beats() -> None:
        async with open_office(load_config({"ARTOO_HOME": str(home)})) as office:
            for name in ("ada", "bob"):
                await office.pulses.record(name, Beat(1, office.clock.now()), "skipped", why)
            done = "work ×1; backing off: HTTP 401"
            await office.pulses.record("cyd", Beat(1, office.clock.now()), "run", done)

    asyncio.run(beats())
    with only_instance(home):
        told = " ".join(run("status").output.split())
    assert f"ada, bob: no pulse is held: {why} ada (probation" in told
    assert "cyd (probation, ready), unread 0, last pulse run (work ×1; backing off: HTTP 401)" in told
    assert "no pulse is held" not in run("status").output


def test_rows_keep_their_ids_on_a_narrow_terminal(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """With 40 columns the id is still whole, and the text stands below it."""
    run("agent", "new", "ada")
    task = run("task", "add", "a long text " * 20, "--to", "ada", "--json").json["id"]
    monkeypatch.setenv("COLUMNS", "40")
    lines = run("task", "list").output.splitlines()
    assert lines[0].startswith(f"{task[:13]} pending standard ada")
    assert lines[1].startswith("  a long text") and len(lines[1]) <= 40


def test_what_has_no_effect_is_refused(run: Run, home: Path) -> None:
    """Letters are sent without waiting, whatever the configuration would like."""
    home.mkdir()
    seed = Path(__file__).with_name("seed_config.yaml").read_text()
    (home / "config.yaml").write_text(seed.replace("default_mode: async", "default_mode: sync"))
    assert "default_mode is 'sync', but must be 'async'" in run("status").errors


MISTAKES: list[tuple[tuple[str, ...], int, str]] = [
    (("agent", "new", "anybody"), 2, "artoo itself uses that name"),
    (("task", "move", "", "cancelled"), 2, "an empty text names no task"),
    (("mail", "read", ""), 2, "an empty text names no mail"),
    (("agent", "new", "ada"), 2, "there is an agent called 'ada' already"),
    (("agent", "new", "bo", "--must-not", "notool"), 2, "there is no tool 'notool'"),
    (("agent", "new", "bo", "--must-not", "shell:"), 2, "there is no tool 'shell:'"),
    (("agent", "new", "Ada"), 2, "begins with a lower-case letter"),
    (("agent", "new", "operator"), 2, "artoo itself uses that name"),
    (("agent", "show", "bob"), 2, "There is no agent 'bob'; there are: ada"),
    (("agent", "trust", "ada", "boss"), 2, "'boss' is not one of"),
    (("task", "add", "x", "--to", "bob"), 1, "There is no agent 'bob'"),
    (("task", "add", " "), 1, "needs a text"),
    (("task", "show", "zzz"), 2, "there is no task 'zzz'"),
    (("task", "move", "zzz"), 2, "Say what to change"),
    (("mail", "send", "bob", "hi"), 1, "Nobody is called 'bob'"),
    (("mail", "send", "ada", "x" * 100_001), 1, "at most 100,000"),
    (("mail", "list", "--of", "bob"), 1, "Nobody is called 'bob'"),
]


def test_mistakes(run: Run) -> None:
    """Each mistake is a clear error that says what there is."""
    run("agent", "new", "ada")
    for words, code, said in MISTAKES:
        ended = run(*words)
        assert (ended.code, said in ended.errors) == (code, True), (words, ended.errors)


def test_moves_that_are_not_the_operators(run: Run) -> None:
    """Completion is reached by a review only, and a move that the states do not have is refused."""
    run("agent", "new", "ada")
    task = run("task", "add", "x", "--to", "ada", "--json").json["id"]
    ended = run("task", "move", task, "completed")
    assert ended.code == 2 and "by a review: artoo task review" in ended.errors
    assert "cannot become archived" in run("task", "move", task, "archived").errors
    assert "only what is in review" in run("task", "review", task, "approve").errors
    assert "Say why" in run("task", "review", task, "reject").errors


def test_changed_identity_is_named(run: Run, home: Path) -> None:
    """An identity that differs from the accepted one shows, until it is accepted; one with mistakes is refused."""
    run("agent", "new", "ada")
    file = home / "agents" / "ada" / "identity.yaml"
    file.write_text(file.read_text() + "# more\n")
    assert "NOT the accepted one" in run("agent", "show", "ada").output
    named = (
        f"not accepted: its identity was changed since it was accepted; read {file}, then: artoo agent accept ada)"
    )
    assert f"ada (probation, {named}" in " ".join(run("status").output.split())
    assert run("agent", "accept", "ada").code == 0
    assert "ada (probation, ready)" in run("status").output
    assert "(accepted)" in run("agent", "show", "ada").output
    file.write_text("role: clerk\nwage: 3\n")
    ended = run("agent", "accept", "ada")
    assert ended.code == 2 and f"{file}:2:1" in ended.errors


def test_an_agent_whose_folder_is_gone_has_a_way_out(run: Run, home: Path) -> None:
    """Every command says the same three ways, and each of them leads out."""
    run("agent", "new", "ben", "--trust", "trusted")
    place = home / "agents" / "ben"
    place.rename(home / "aside")
    for words in (("show", "ben"), ("accept", "ben")):
        assert "artoo agent new ben" in run("agent", *words).errors
    assert run("agent", "list", "--json").json["agents"][0]["state"] == "folder gone"
    told = " ".join(run("status").output.split())
    assert "ben (trusted, folder gone)" in told and "! ben: its folder is gone: put agents/ben back" in told
    assert run("agent", "pause", "ben").code == 0 and "! ben" in run("status").output
    assert run("agent", "resume", "ben").code == 0
    assert run("agent", "new", "ben", "--role", "clerk").code == 0
    shown = run("agent", "show", "ben", "--json").json
    assert shown["accepted"] and shown["role"] == "clerk" and shown["trust"] == "probation"
    assert "already" in run("agent", "new", "ben").errors


def test_nobody_writes_to_an_agent_that_is_not_there(run: Run, home: Path) -> None:
    """Neither to one that never was nor to one whose folder is gone; the error names those there are."""
    for name in ("ada", "ben"):
        assert run("agent", "new", name).code == 0
    assert run("mail", "send", "ben", "before").code == 0
    (home / "agents" / "ben").rename(home / "aside")
    for name in ("zoe", "ben"):
        for words in (("hello",), ("hello", "--wait", "1")):
            refused = run("mail", "send", name, *words)
            assert refused.code != 0 and "known: operator, ada." in refused.errors
    assert "folder is gone" in run("mail", "send", "ben", "hello").errors
    assert [one["text"] for one in run("mail", "list", "--of", "ben", "--json").json] == ["before"]
    (home / "aside").rename(home / "agents" / "ben")
    assert run("mail", "send", "ben", "after").code == 0


def test_an_agent_is_retired_and_taken_back(run: Run, home: Path) -> None:
    """Its tasks are anybody's, its letters and its name are kept; nothing of it is complained about any more."""
    for name in ("ada", "ben"):
        assert run("agent", "new", name).code == 0
    assert run("task", "add", "one", "--to", "ada").code == 0
    assert run("mail", "send", "ada", "hello").code == 0
    ended = run("agent", "retire", "ada", "--why", "no longer needed", "--json").json
    assert ended["state"] == "retired" and len(ended["given_back"]) == 1
    assert run("task", "list", "--json").json[0]["assignee"] is None
    refused = run("mail", "send", "ada", "hello")
    assert refused.code == 1 and "retired; known: operator, ben." in refused.errors
    assert "retired" in run("task", "add", "two", "--to", "ada").errors
    (home / "agents" / "ada").rename(home / "aside")
    refused = run("agent", "new", "ada")
    assert refused.code == 2 and "the name stays with its letters" in refused.errors
    assert [one["state"] for one in run("agent", "list", "--json").json["agents"]] == ["ready", "retired"]
    status = run("status", "--json").json
    assert [one["name"] for one in status["agents"]] == ["ben"] and status["problems"] == []
    assert [one["text"] for one in run("mail", "list", "--of", "ada", "--json").json] == ["hello"]
    assert "artoo agent accept ada" in run("agent", "resume", "ada").output
    (home / "aside").rename(home / "agents" / "ada")
    assert run("agent", "show", "ada", "--json").json["state"] == "retired"
    assert run("agent", "accept", "ada").code == 0
    assert run("agent", "list", "--json").json["agents"][0]["state"] == "ready"


def test_a_routine_that_fails_is_in_the_status(run: Run, home: Path) -> None:
    """Once, with those whose look failed; a paused agent does not look."""
    for name in ("ada", "ben", "cyd"):
        assert run("agent", "new", name).code == 0

    async def failed() -> str:
        async with open_office(load_config({"ARTOO_HOME": str(home)})) as office:
            for name in ("ada", "ben", "cyd"):
                await PatrolStore(office.database, name).note_problem(str(office.routine), "it ended with code 3")
            return str(office.routine)

    routine = asyncio.run(failed())
    assert run("agent", "pause", "cyd").code == 0
    assert run("status", "--json").json["problems"] == [f"{routine} (ada, ben): it ended with code 3"]


def test_the_options_do_what_their_page_says(run: Run) -> None:
    """The small ones of the team's commands (docs/agents.md), each seen by what it changes."""
    assert run("agent", "new", "ada", "--skill", "search", "--skill", "two words", "--must-not", "shell").code == 0
    shown = run("agent", "show", "ada", "--json").json
    assert (shown["skills"], shown["must_not"]) == (["search", "two words"], ["shell"])
    assert run("task", "add", "one", "--priority", "critical", "--json").json["priority"] == "critical"
    second = run("task", "add", "two", "--to", "ada", "--json").json
    assert run("task", "move", second["id"], "--priority", "background", "--json").json["priority"] == "background"
    assert run("task", "move", second["id"], "cancelled").code == 0

    def texts(*words: str) -> list[str]:
        return [one["text"] for one in run("task", "list", *words, "--json").json]

    assert texts("--agent", "ada") == ["two"] and texts("--state", "pending") == ["one"]
    assert texts("--state", "pending", "--state", "cancelled") == ["one", "two"]
    assert run("mail", "send", "ada", "hi", "--priority", "critical", "--json").json["priority"] == "critical"
    boxes = {box: len(run("mail", "list", "--of", "ada", "--box", box, "--json").json) for box in BOXES}
    assert boxes == {"inbox": 1, "outbox": 0, "archive": 0, "sent": 0}
    assert len(run("mail", "list", "--box", "sent", "--json").json) == 1


def test_a_patrol_item_that_is_wrong_is_told(run: Run, home: Path) -> None:
    """In the status at any time, and by `serve` when it comes up, a script's failure too."""
    run("agent", "new", "sam")
    routine = home / "agents" / "sam" / "HEARTBEAT.md"
    routine.write_text("- every: 7x typo here\n")
    assert f"! {routine}:1:" in "".join(run("status").output.split("\n"))
    now = datetime(2026, 1, 1, tzinfo=UTC)
    refused = PatrolRefused(agent="sam", path="p.sh", line=1, problem="it ended with exit code 3", at=now)
    assert told(Envelope("1", Role.HEARTBEAT, "sam", now, refused)) == "sam: p.sh:1: it ended with exit code 3"


def test_folders_that_are_no_agents(run: Run, home: Path) -> None:
    """Two agents of one name, and folders without an identity, are named with what to do."""
    run("agent", "new", "ada")
    (home / "config").mkdir()
    (home / "config" / "agent_identity.yaml").write_text("name: ada\nrole: clerk\npersona: exact\n")
    (home / "agents" / "eve").mkdir()
    problems = run("agent", "list", "--json").json["problems"]
    assert any("two agents" in problem for problem in problems)
    assert any("identity.yaml" in problem for problem in problems)


def test_seed_configuration_works(run: Run, home: Path) -> None:
    """The seed's template works as it is, its database path below the home included; a bad interval is refused."""
    home.mkdir()
    seed = Path(__file__).with_name("seed_config.yaml").read_text()
    (home / "config.yaml").write_text(seed)
    assert run("agent", "new", "ada").code == 0
    assert (home / "data" / "agent_activities.db").exists()
    (home / "config.yaml").write_text(seed.replace("interval_seconds: 120", "interval_seconds: 10"))
    ended = run("status")
    assert ended.code == 2
    assert "must be from 60 to 300 seconds" in ended.errors
    (home / "config.yaml").write_text(seed.replace("task_scan", "task_scans"))
    assert "task_scans" in run("status").errors


@pytest.mark.parametrize(("events", "as_json"), [(True, False), (False, True), (False, False)])
def test_what_serve_prints_holds_no_secret(events: bool, as_json: bool) -> None:
    """Why a task failed may quote a key: as an event, as JSON and as a line, also where the line is cut."""
    key = "sk-abcdefghijklmnopqrstuvwxyz123456"
    moved = TaskMoved(
        event="s-1",
        board_task="t1",
        before=BoardState.PENDING,
        after=BoardState.FAILED,
        actor="ada",
        reason=f"{'so ' * 140} the call said: api_key={key}, {key}",
        at=datetime.now(UTC),
        by_policy=False,
    )
    line = line_of(Envelope("1", Role.BOARD, "s", moved.at, moved), events=events, as_json=as_json)
    assert line is not None and "api_key=" in line and "sk-abc" not in line
    if events or as_json:
        assert json.loads(line)["kind"] == "TaskMoved"


def test_times_are_those_of_the_persons_own_clock(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """In lists, letters, histories and what `artoo serve` prints; none says another zone's beside them."""
    monkeypatch.setenv("TZ", "XYZ-09:30")  # east of UTC by so much
    time.tzset()
    try:
        letter = run("mail", "send", "operator", "hello", "--json").json
        sent = datetime.fromisoformat(letter["sent_at"]) + timedelta(hours=9, minutes=30)
        assert f"{sent:%Y-%m-%d %H:%M}" in run("mail", "list").output
        assert f"{sent:%Y-%m-%d %H:%M}, standard" in run("mail", "read", letter["id"]).output
        at = datetime(2026, 11, 28, 20, 0, 1, tzinfo=UTC)
        moved = TaskMoved(
            event="e", board_task="t", before=None, after=BoardState.PENDING, actor="ada", at=at, by_policy=False
        )
        assert record_line(moved).startswith("2026-11-29 05:30  ")
        line = line_of(Envelope("1", Role.BOARD, "s", at, moved), events=False, as_json=False)
        assert line is not None and line.startswith("05:30:01  ")
    finally:
        monkeypatch.undo()
        time.tzset()


def test_serve_needs_agents(run: Run, home: Path) -> None:
    """Serving nobody is refused, and so is serving twice, and working for others where there are none."""
    ended = run("serve")
    assert ended.code == 2 and "artoo agent new" in ended.errors
    ended = run("worker")
    assert ended.code == 2 and "set `store`" in ended.errors
    with only_instance(home):
        ended = run("serve")
        assert ended.code == 2 and "runs for" in ended.errors


def test_a_team_whose_output_nobody_reads_works_and_ends_when_asked(run: Run, home: Path) -> None:
    """What cannot be said stands in the way of no signal: it ran until it was killed (`serve 2>&1 | head`)."""
    run("agent", "new", "ada")
    reader, writer = os.pipe()
    environ = {**os.environ, "OPENAI_BASE_URL": "http://127.0.0.1:9/v1", "OPENAI_MODEL": "none"}
    command = [sys.executable, "-m", "artoo", "serve"]
    with subprocess.Popen(command, env=environ, stdout=writer, stderr=writer) as process:
        os.close(writer)
        try:
            with os.fdopen(reader, "rb") as lines:
                while b"at work" not in lines.readline():
                    assert process.poll() is None
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0
        finally:
            process.kill()


def test_listings_fit_the_terminal(run: Run) -> None:
    """No listing is wider than 80 columns."""
    run("agent", "new", "ada")
    run("task", "add", "a long text " * 20, "--to", "ada")
    run("mail", "send", "ada", "a long letter " * 20)
    for words in (("task", "list"), ("mail", "list", "--of", "ada"), ("agent", "list"), ("status",)):
        assert all(len(line) <= 80 for line in run(*words).output.splitlines()), words


def test_what_is_silent_until_a_pulse_is_told_beforehand(run: Run, home: Path) -> None:
    """A changed identity is listed as not accepted, and doctor names it with a routine's mistakes."""
    run("agent", "new", "ada")
    folder = home / "agents" / "ada"
    (folder / "HEARTBEAT.md").write_text("- look at it\n  every: sometimes\n")
    assert run("agent", "list", "--json").json["agents"][0]["state"] == "ready"
    identity = next(path for path in folder.iterdir() if path.name != "HEARTBEAT.md")
    identity.write_text(identity.read_text() + "# changed\n")
    [listed] = run("agent", "list", "--json").json["agents"]
    assert listed["state"] == "not accepted"
    assert "artoo agent accept ada" in listed["detail"]
    (home / "mcp.json").write_text('{"mcpServers": {"notes": {"command": "no-such-program"}}}')
    found = {one["name"]: one for one in run("doctor", "--json").json}
    assert found["agent ada"]["state"] == "warn"
    assert "HEARTBEAT.md:" in found["agents"]["detail"]
    assert "no-such-program" in found["mcp"]["detail"]
