"""Records what a terminal shows, in tmux, as the text files of docs/recordings.

    python tests/cli/terminal_recording.py [DIRECTORY] [--only SCENE]      makes the files that are not there

A real command, a real project and a real sandbox, with a scripted model behind HTTP: a run, a review, an interrupt
and a failure, at 60, 80 and 140 columns, with colours and without (NO_COLOR). Nothing of the screen is written by
hand. Each file has what stood on the screen while something went on, and at the end. What differs from run to run
(ids, days, seconds) or with the prompts (tokens) has a fixed form; the escape character of a colour is written ␛.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from artoo.testing import Asked, Reply, ScriptedServer, with_body
from artoo.testing.replies import Scripted

WIDTHS = (60, 80, 140)
ROWS = 30
PATIENCE = 300.0
COLOURS = {True: "colours", False: "plain"}
DIRECTORY = Path(__file__).parents[2] / "docs" / "recordings"
NOTES = (
    "# Notes\n\nThe colour of the door is chosen once, and everybody who lives in the house may say something.\n"
)


def shell(command: str, *, final: bool = True) -> Reply:
    """A step that runs a command."""
    return with_body({"tool": "shell", "is_final": final}, command)


def plan(intent: str) -> dict[str, object]:
    """A plan of one step that any answer meets."""
    check = {"check": "output_matches", "regex": r"[A-Za-z0-9]"}
    criterion = {"text": "there is an answer", "mode": "verifiable", "check": check}
    return {"subtasks": [{"sequence": 1, "intent": intent}], "task_criteria": [criterion]}


@dataclass(frozen=True)
class Scene:
    """One request. `steps`: what the model answers as executor, in order. `until`: what is waited for with colours
    and without, and the keys that are sent then; each time the screen is kept before.
    """

    name: str
    request: str
    intent: str
    steps: tuple[Scripted, ...]
    until: tuple[tuple[str, str, str], ...] = ()


COUNT = "wc -l notes.md; for part in one two three; do echo looking at part $part of them; sleep 0.2; done; sleep 2"
SCENES = (
    Scene(
        "run",
        "How many lines has notes.md, and which of its words is the longest one in the whole file?",
        "Count the lines of notes.md and find its longest word",
        (
            shell(COUNT, final=False),
            shell(
                "wc -l < notes.md; tr -cs 'a-z' '\\n' < notes.md | awk '{ print length, $0 }' | sort -n | tail -1"
            ),
        ),
        (("part three", "looking at part", ""),),
    ),
    Scene(
        "review",
        "Write color for colour in the notes, and remove the old draft",
        "Replace colour by color in notes.md and delete draft.md",
        (
            shell(
                "sed -i s/colour/color/ notes.md; rm draft.md; echo The notes say color now, and the draft is gone."
            ),
        ),
        (("[a]pply all", "[a]pply all", "a"),),
    ),
    Scene(
        "interrupt",
        "Wait for the build to end and tell me how it went",
        "Wait for the build",
        (shell("echo the build goes on; sleep 60"),),
        (
            ("the build goes on", "the build goes on", "C-c"),
            ("What should be different?", "What should be different?", "C-c"),
        ),
    ),
    Scene(
        "failure",
        "Remove the directory locked with everything that is in it",
        "Remove the directory locked",
        (
            shell("cat /proc/nothing/of/the/kind; rmdir locked"),
            {"tool": "cannot", "input": "rmdir says that the directory is not empty"},
        ),
    ),
)


class Tmux:
    """One session of a tmux of its own."""

    def __init__(self, columns: int, directory: Path, environ: dict[str, str], words: Sequence[str]) -> None:
        self._socket = f"artoo-{os.getpid()}-{columns}"
        given = [part for name, value in environ.items() for part in ("-e", f"{name}={value}")]
        self._tmux(
            "-f", "/dev/null", "new-session", "-d", "-x", str(columns), "-y", str(ROWS), "-c", str(directory)
        )
        self._tmux("set-option", "-g", "remain-on-exit", "on")
        self._tmux("set-option", "-g", "history-limit", "5000")
        self._tmux("respawn-pane", "-k", "-c", str(directory), *given, shlex.join(words))

    def screen(self, *, whole: bool = False) -> str:
        """What stands there, with colours as escape sequences; `whole`: with the scrollback."""
        shown = self._tmux("capture-pane", "-p", "-e", "-N", *(("-S", "-") if whole else ()))
        return "\n".join(line.rstrip() for line in shown.splitlines()).rstrip() + "\n"

    def wait_for(self, holds: Callable[[str], bool], what: str) -> None:
        """Looks until it holds."""
        deadline = time.monotonic() + PATIENCE
        while not holds(self.screen(whole=True)):
            if time.monotonic() > deadline:
                raise AssertionError(f"{what} did not come; there was:\n{self.screen(whole=True)}")
            time.sleep(0.05)

    def press(self, keys: str) -> None:
        """Types; a key's name as tmux has it."""
        self._tmux("send-keys", keys)
        if not keys.startswith("C-"):
            self._tmux("send-keys", "Enter")

    @property
    def ended(self) -> bool:
        """Whether the program is gone."""
        return self._tmux("display-message", "-p", "#{pane_dead}").strip() == "1"

    def close(self) -> None:
        """Ends this tmux and nothing else."""
        subprocess.run(["tmux", "-L", self._socket, "kill-server"], capture_output=True, check=False)

    def _tmux(self, *arguments: str) -> str:
        environ = {**os.environ, "LC_ALL": "C.UTF-8"}
        command = ["tmux", "-u", "-L", self._socket, *arguments]
        return subprocess.run(command, env=environ, capture_output=True, text=True, check=True).stdout


async def record(scene: Scene, columns: int, colours: bool, place: Path) -> str:
    """Plays a scene in an empty directory; the text of its file."""
    project = place / "project"
    (project / "locked").mkdir(parents=True)
    (project / "locked" / "key.txt").write_text("a key\n")
    (project / "notes.md").write_text(NOTES)
    (project / "draft.md").write_text("not needed any more\n")
    steps = iter(scene.steps)

    def answer(asked: Asked) -> Scripted:
        if asked.contract == "Plan":
            return plan(scene.intent)
        return next(steps) if asked.contract == "ExecutorStep" else {"verdicts": [], "next_moves": []}

    async with ScriptedServer(answer) as server:
        environ = {
            "HOME": str(place),
            "ARTOO_HOME": str(place / ".artoo"),
            "OPENAI_BASE_URL": server.base_url,
            "OPENAI_MODEL": "scripted",
            "ARTOO_CONTROL__MAX_REPLANS": "1",
            "LC_ALL": "C.UTF-8",
            **({} if colours else {"NO_COLOR": "1"}),
        }
        return await asyncio.to_thread(_played, scene, columns, colours, project, environ)


def _played(scene: Scene, columns: int, colours: bool, project: Path, environ: dict[str, str]) -> str:
    words = [sys.executable, "-m", "artoo", "run", scene.request]
    tmux = Tmux(columns, project, environ, words)
    shown = [f"$ artoo {shlex.quote(scene.request)}\n"]
    try:
        for live, plain, keys in scene.until:
            text = live if colours else plain
            tmux.wait_for(lambda screen, text=text: text in " ".join(_without_colours(screen).split()), text)
            shown.append(f"--- on the screen{' (then: ' + keys + ')' if keys else ''}\n{tmux.screen(whole=True)}")
            if keys:
                tmux.press(keys)
        tmux.wait_for(lambda _: tmux.ended, "the end")
        shown.append(
            f"--- at the end\n{re.sub(r'^Pane is dead.*$', '', tmux.screen(whole=True), flags=re.M).rstrip()}\n"
        )
    finally:
        tmux.close()
    return settled("\n".join(shown))


def settled(text: str) -> str:
    """The same from run to run."""
    text = re.sub(r"\b[0-9a-f]{8}-[0-9a-f]{4}\b", "01a2b3c4-5d6e", text)
    text = re.sub(r"\d{4}-\d\d-\d\d(\s+\d\d:\d\d)?", "2026-12-22", text)
    text = re.sub(r"\b\d+(?:\.\d)? s\b", "2 s", text)
    text = re.sub(r"\b\d,\d{3} tokens(\s+)\(\d\d?% cached", r"1,200 tokens\1(16% cached", text)  # by the prompts
    text = re.sub(r"[⠀-⣿](?= )", "⠋", text)
    return text.replace("\x1b", "␛")


def _without_colours(text: str) -> str:
    return re.sub(r"(?:\x1b|␛)\[[0-9;:]*m", "", text)


def name_of(scene: Scene, columns: int, colours: bool) -> str:
    """The file of a recording."""
    return f"{scene.name}-{columns}-{COLOURS[colours]}.txt"


def main() -> None:
    """Records those that are not there."""
    parser = argparse.ArgumentParser()
    parser.add_argument("directory", nargs="?", type=Path, default=DIRECTORY)
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    for scene in SCENES:
        for columns in WIDTHS:
            for colours in COLOURS:
                if (
                    given.only in ("", scene.name)
                    and not (given.directory / name_of(scene, columns, colours)).exists()
                ):
                    with tempfile.TemporaryDirectory() as directory:
                        home = Path(os.path.realpath(directory)) / "home"
                        home.mkdir()
                        text = asyncio.run(record(scene, columns, colours, home))
                    (given.directory / name_of(scene, columns, colours)).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
