"""A real run of three agents on the embedded model, from the board to the archive, as a page of the documentation.

    python benchmarks/team_run.py --model MODEL.gguf --page docs/team-run.md

Every line of the transcript is what the commands printed. The tasks are small because the model is; one is
rejected once, by the operator, so that the way back is seen. Needs some minutes; exits with 1, and writes nothing,
when a task does not reach the archive.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

TASKS = (
    ("ada", "simple", "Create a file named hello.txt that holds the line: hello from ada"),
    (
        "bob",
        "simple",
        "Write the lines of names.txt sorted alphabetically and without duplicates to the new file unique.txt.",
    ),
    (
        "cyd",
        "complex",
        "Create a file named shopping.txt with exactly three lines: milk, eggs, bread (one word per line)",
    ),
)
NAMES = "Wang\nAnn\nZoe\nAnn\nBob\nWang\n"
REJECTION = "The file needs a second line: goodbye from ada"
WAIT_SECONDS = 1_800.0
POLL_SECONDS = 2.0
OVER = ("completed", "failed", "cancelled")


@dataclass(slots=True)
class Session:
    """A home, a project, and what was typed and printed."""

    environ: Mapping[str, str]
    project: Path
    lines: list[str] = field(default_factory=list[str])

    def artoo(self, *words: str, shown: bool = True) -> str:
        """Runs a command and keeps it with its output. Raises CalledProcessError."""
        ended = subprocess.run(
            [sys.executable, "-m", "artoo", *words],
            cwd=self.project,
            env=self.environ,
            capture_output=True,
            text=True,
            check=True,
        )
        if shown:
            self.note(words, ended.stdout)
        return ended.stdout

    def note(self, words: Sequence[str], output: str) -> None:
        """A command and what it said, as on a terminal."""
        typed = " ".join(word if word.isidentifier() or word.startswith("-") else _quoted(word) for word in words)
        self.lines += [f"$ artoo {typed}", *output.rstrip("\n").split("\n"), ""]

    def until(self, task: str, *states: str) -> str:
        """The state of a task once it is one of these. Raises TimeoutError."""
        end = time.monotonic() + WAIT_SECONDS
        while time.monotonic() < end:
            listed: list[dict[str, str]] = json.loads(self.artoo("task", "list", "--all", "--json", shown=False))
            state = next(one["state"] for one in listed if one["id"] == task)
            if state in states:
                return state
            time.sleep(POLL_SECONDS)
        raise TimeoutError(f"task {task} did not become {' or '.join(states)} in {WAIT_SECONDS:g} s")


def _quoted(word: str) -> str:
    return f'"{word}"' if " " in word else word


def play(session: Session) -> bool:
    """The whole run. True when all three tasks were completed and archived, one of them rejected once."""
    for name, trust in (("ada", "probation"), ("bob", "standard"), ("cyd", "senior")):
        session.artoo("agent", "new", name, "--role", "clerk", "--trust", trust)
    tasks: list[str] = []
    for name, complexity, text in TASKS:
        words = ("task", "add", text, "--to", name, "--complexity", complexity)
        made = json.loads(session.artoo(*words, "--json", shown=False))
        session.note(words, f"task {made['id']} is pending")
        tasks.append(made["id"])
    session.artoo("task", "move", tasks[0], "--reviewer", "operator")
    served = session.project.parent / "serve.txt"
    with (
        served.open("w") as output,
        subprocess.Popen(
            [sys.executable, "-m", "artoo", "serve"],
            cwd=session.project,
            env=session.environ,
            stdout=output,
            stderr=subprocess.STDOUT,
        ) as serving,
    ):
        try:
            done = _govern(session, tasks)
        finally:
            serving.terminate()
            serving.wait(60)
    session.note(("serve",), served.read_text())
    for task in tasks:
        session.artoo("task", "log", task)
    session.artoo("status")
    return done


def _govern(session: Session, tasks: Sequence[str]) -> bool:
    """The operator's part: rejects the first submission once, lets the senior agent review the next."""
    session.until(tasks[0], "review", *OVER)
    session.artoo("task", "show", tasks[0])
    session.artoo("task", "review", tasks[0], "reject", REJECTION)
    session.artoo("task", "move", tasks[0], "--reviewer", "anybody")
    endings = [session.until(task, *OVER) for task in tasks]
    for task, ending in zip(tasks, endings, strict=True):
        if ending == "completed":
            session.artoo("task", "move", task, "archived")
    return endings == ["completed"] * len(tasks)


def page(session: Session, seconds: float) -> str:
    """The documentation page."""
    files = [
        line
        for path in sorted(session.project.glob("*.txt"))
        for line in (f"{path.name}:", *(f"    {text}" for text in path.read_text().splitlines()))
    ]
    transcript = "\n".join(f"    {line}".rstrip() for line in session.lines)
    cost = f"{seconds / 60:.0f} minutes on {os.cpu_count()} processors"
    return (
        "# A run of three agents\n\n"
        "Three agents (probation, standard, senior) on the embedded model take three small tasks from the board\n"
        f"to the archive; one is rejected once. It took {cost}.\n"
        "This is what was typed and printed (`benchmarks/team_run.py` makes this page):\n\n"
        f"{transcript}\n\n"
        "And this is what is in the project afterwards:\n\n" + "\n".join(f"    {line}" for line in files) + "\n"
    )


def main() -> int:
    """Runs it. Returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else None)
    parser.add_argument("--model", type=Path, help="a GGUF file (default: the installed model)")
    parser.add_argument("--page", type=Path, required=True, help="where the page is written")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="artoo-team-") as place:
        root = Path(place).resolve()
        project = root / "project"
        project.mkdir()
        (project / "names.txt").write_text(NAMES)
        environ = {
            **os.environ,
            "ARTOO_HOME": str(root / "home"),
            "ARTOO_WORKSPACE": str(root / "out"),
            "COLUMNS": "80",
            "ARTOO_CONTROL__TIME_BUDGET_MS": "1200000",  # three agents share one small model on few processors
        }
        if given.model is not None:
            environ["ARTOO_EMBEDDED__MODEL"] = str(given.model.resolve())
        session = Session(environ, project)
        started = time.monotonic()
        done = play(session)
        text = page(session, time.monotonic() - started).replace(str(root), "~")
    print(text)
    if done:
        given.page.write_text(text, encoding="utf-8")
    return 0 if done else 1


if __name__ == "__main__":
    sys.exit(main())
