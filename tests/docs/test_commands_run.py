"""Every command that the documentation shows is run, by this test or by one that is named here."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Generator
from pathlib import Path

import pytest
from test_commands import lines, words_of

from artoo.cli.commands.group import COMMANDS
from artoo.cli.main import main
from artoo.testing import Asked, ScriptedServer
from artoo.testing.replies import Scripted

ROOT = Path(__file__).parents[2]
CODES = {0, 1, 2, 3, 4, 130}
ELSEWHERE: dict[tuple[str, ...], str] = {
    ("serve",): "tests/team/test_serve_killed.py",
    ("web",): "tests/web/test_guard.py",
    ("mcp",): "tests/protocols/test_protocols_start.py",
    ("mcp", "--http"): "tests/protocols/test_mcp_http.py",
    ("a2a",): "tests/protocols/test_a2a_client.py",
    ("mcp", "test"): "tests/cli/test_words.py",
    ("model", "pull"): "tests/llm/test_model_store.py",
    ("doctor",): "tests/cli/test_doctor.py",
    ("run", "--background"): "tests/cli/test_background.py",
}
"""What runs until it is stopped or for minutes, fetches a gigabyte or proves this machine; which test runs it."""


def elsewhere(words: list[str]) -> str | None:
    """The test that runs it, when this one does not."""
    bare = [word for word in words if not word.startswith("-") or word in ("--http", "--background")]
    return next((test for count in (2, 1) if (test := ELSEWHERE.get(tuple(bare[:count])))), None)


def is_alone(words: list[str]) -> bool:
    """Whether `artoo mcp` serves, and does not list, add or remove."""
    return words[:1] != ["mcp"] or words[1:2] not in (["list"], ["add"], ["remove"])


@pytest.fixture(scope="module")
def model() -> Generator[str]:
    """A server that answers every plan with a reply; its address."""

    def answer(asked: Asked) -> Scripted:
        return {"reply": "Done."}

    started, stop = threading.Event(), asyncio.Event()
    found: list[tuple[asyncio.AbstractEventLoop, str]] = []

    async def serve() -> None:
        async with ScriptedServer(answer) as server:
            found.append((asyncio.get_running_loop(), server.base_url))
            started.set()
            await stop.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert started.wait(30)
    loop, address = found[0]
    yield address
    loop.call_soon_threadsafe(stop.set)
    thread.join(30)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str) -> Path:
    """A person's home and a project in it, with the files that the pages speak of."""
    home = tmp_path / "person"
    (home / "project").mkdir(parents=True)
    for name in ("people.csv", "names.txt", "notes.md", "notes.txt"):
        (home / "project" / name).write_text("name,age\nAnn,34\n")
    for name, value in {
        "HOME": str(home),
        "ARTOO_HOME": str(home / ".artoo"),
        "OPENAI_BASE_URL": model,
        "OPENAI_MODEL": "scripted",
    }.items():
        monkeypatch.setenv(name, value)
    for name in ("BRAIN_MODEL", "TOOL_MODEL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(home / "project")
    return home


def runs() -> list[str]:
    """The lines that this test runs, each once."""
    found = (line for _, line in lines() if not (elsewhere(words_of(line)) and is_alone(words_of(line))))
    return list(dict.fromkeys(found))


@pytest.mark.parametrize("line", runs(), ids=lambda line: line.replace(" ", "_")[:60])
def test_it_runs(place: Path, line: str, capfd: pytest.CaptureFixture[str]) -> None:
    """As it is written, in a fresh home: an exit code that the manual knows, words, and no traceback."""
    code = main(words_of(line))
    said = "".join(capfd.readouterr())
    assert code in CODES, (line, code, said)
    assert "Traceback" not in said and "a defect in artoo" not in said, (line, said)
    assert said.strip() or code == 0, line


def test_what_is_run_elsewhere_is_there() -> None:
    """Each named test file speaks of its command."""
    for words, test in ELSEWHERE.items():
        assert words[0] in COMMANDS
        assert words[0] in (ROOT / test).read_text(encoding="utf-8"), test
