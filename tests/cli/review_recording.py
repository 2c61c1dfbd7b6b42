"""Records one review on a real terminal, as the text of docs/review.md.

    python tests/cli/review_recording.py            prints the page

A real command in a real view is reviewed: nothing of the screen is written by hand. What differs from run to run
(the task's id, the day until which something is kept) is put into a fixed form, and a test compares the page.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from contextlib import AbstractContextManager
from pathlib import Path

from cli_terminal import Terminal, terminal

COLUMNS = 80
COMMAND = "sed -i s/teh/the/g *.md; rm draft.md; echo 'make test' > .git/hooks/pre-commit; cat *.md > all.txt"
ASK = "[a]pply all, [c]hoose, [k]eep for later, [d]iscard, [s]how again: "

PAGE = Path(__file__).parents[2] / "docs" / "review.md"


def record(place: Path) -> str:
    """Plays the session in an empty directory, and returns all that the terminal showed."""
    project = _project(place)
    before = Path.cwd()
    os.chdir(project)
    try:
        shown = [_reviewed(place), *(_session(place, words) for words in (["diff"], ["discard"], ["undo"]))]
    finally:
        os.chdir(before)
    return _settled("\n".join(shown))


def page(recorded: str) -> str:
    """Return the page of the docs with this recording."""
    head = PAGE.read_text(encoding="utf-8").partition("```text\n")[0]
    return f"{head}```text\n{recorded}```\n"


def _project(place: Path) -> Path:
    project = place / "notes"
    project.mkdir(parents=True)
    (project / "plan.md").write_text("# Plan\n\nFirst teh garden, then teh roof.\n")
    (project / "letter.md").write_text("Dear Ada,\n\nteh house is dry.\n")
    (project / "draft.md").write_text("not needed any more\n")
    subprocess.run(["git", "init", "-q", str(project)], check=True)
    return project


def _reviewed(place: Path) -> str:
    with _artoo(place, ["sandbox", "--", COMMAND]) as screen:
        screen.wait_for(ASK)
        screen.send("c\r")
        screen.wait_for("Which?")
        screen.send("3-5\r")
        screen.wait_for("[y]es, [N]o: ")
        screen.send("y\r")
        screen.end()
        return f'$ artoo sandbox -- "{COMMAND}"\n{_text(screen)}'


def _session(place: Path, words: list[str]) -> str:
    if words == ["undo"]:
        words = ["undo", _undoable(place)]
    with _artoo(place, words) as screen:
        if words == ["discard"]:
            screen.wait_for("[y]es, [N]o: ")
            screen.send("y\r")
        if words == ["diff"]:
            screen.wait_for("until 20")
        screen.end()
        return f"$ artoo {' '.join(words)}\n{_text(screen)}"


def _artoo(place: Path, words: list[str]) -> AbstractContextManager[Terminal]:
    environ = {"HOME": str(place), "NO_COLOR": "1"}
    return terminal("accepted", words, place / ".artoo", environ, columns=COLUMNS)


def _undoable(place: Path) -> str:
    [task] = (found for found in (place / ".artoo" / "undo").iterdir() if found.is_dir())
    return task.name[:4]


def _text(screen: Terminal) -> str:
    """What stood on the terminal at the end: a line that was erased is gone."""
    lines = (line.rpartition("\r")[2] for line in screen.shown.split("\n"))
    return "\n".join(line.rstrip() for line in lines)


def _settled(text: str) -> str:
    text = re.sub(r"\b[0-9a-f]{8}-[0-9a-f]{4}\b", "01a2b3c4-5d6e", text)
    return re.sub(r"\d{4}-\d\d-\d\d(\s+\d\d:\d\d)?", "2026-12-22", text)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        home = Path(os.path.realpath(directory)) / "home"
        home.mkdir()
        sys.stdout.write(page(record(home)))
