# ruff: noqa: E501 (the files and requests are as a person would write them)
"""Twenty ordinary requests of a new user, each in a fresh home: docs/first-hour.md is what this printed.

    python benchmarks/first_hour.py OUT.jsonl [--models DIR] [--only NAME …] [--minutes N]
    python benchmarks/first_hour.py OUT.jsonl --page > docs/first-hour.md
    python benchmarks/first_hour.py OUT.jsonl --patience 9000 --together 4    # a person answers behind the endpoint

The requests, the files and what would be right were written before any answer was seen. `--models` holds the
fetched model (default: `~/.artoo/models`); without a configured endpoint it is the embedded one. Requests that
OUT.jsonl has are not asked again. `--minutes` starts none after that time. `--together`: so many at once. Whether an answer is right is decided by
code where files or numbers decide it; else a person reads it, and writes `"right": true` or `false` into OUT.jsonl.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from artoo.contracts.events import ModelCalled
from artoo.tasklog.reader import TaskLogReader, list_tasks

PATIENCE = 900.0
"""Seconds for one request; artoo's own time budget, which a new user does not change, is shorter."""

Json = dict[str, object]
Judge = Callable[[Path, str], bool]
"""From the project as it is at the end and the answer to whether that is right."""

PEOPLE = "name,age,city\nAnna,34,Bern\nBen,51,Basel\nCarol,29,Bern\nDan,46,Genf\nEva,40,Bern\nFinn,62,Basel\n"
LOG = """2026-03-02 08:00:01 INFO started
2026-03-02 08:00:09 ERROR disk full
2026-03-02 08:01:17 WARN slow answer
2026-03-02 08:02:40 ERROR connection lost
2026-03-02 08:03:02 ERROR disk full
2026-03-02 08:04:55 INFO cleaned up
2026-03-02 08:05:30 ERROR disk full
2026-03-02 08:06:00 INFO stopped
"""
MAIN = """import sys


def count(text):
    words = {}
    for word in text.lower().split():
        words[word] = words.get(word, 0) + 1
    return words


if __name__ == "__main__":
    # TODO: read several files
    with open(sys.argv[1]) as file:
        for word, number in sorted(count(file.read()).items(), key=lambda pair: -pair[1])[:10]:
            print(number, word)
"""
SHOP = """def total(prices, discount=0.0):
    whole = sum(prices)
    # TODO: refuse a negative discount
    return whole * (1 - discount)
"""
CALC = "def median(numbers):\n    ordered = sorted(numbers)\n    return ordered[len(ordered) // 2]\n"
TEST_CALC = """from calc import median

assert median([3, 1, 2]) == 2
assert median([4, 1, 2, 3]) == 2.5
print("ok")
"""
NOTES = """Monday: buy paint and brushes.
Dentist: Thursday 14 May, 10:40, Dr. Keller.
Return the library books before the 20th.
"""
MEETING = """# Meeting of 3 June

Present: Ines, Jo, Karim.

Ines reported that the new website goes live on 1 July. The old one stays reachable until the end of September.
Jo has talked to three printers; the offer of Roth is the cheapest (1,180 francs for 500 brochures) and was accepted.
Karim looks after the volunteers for the summer party. Eight are still missing. The next meeting is on 17 June.
"""
GUIDE = "# Guide\n\nThe colour of a door is chosen once. Every colour has a number.\n"
PAINT = "# Paint\n\nOrder the colour by its number.\n"


@dataclass(frozen=True)
class Request:
    """One request. `right` says in words what is right; `judge` decides it, None: a person reads it."""

    name: str
    kind: str
    text: str
    right: str
    files: Mapping[str, str] = field(default_factory=dict[str, str])
    judge: Judge | None = None


def has(*parts: str) -> Judge:
    """All of these stand in the answer."""
    return lambda project, answer: all(part.casefold() in answer.casefold() for part in parts)


def keeps(**files: str | None) -> Judge:
    """The files are these, word for word (None: gone). A double underscore stands for a dot."""

    def judge(project: Path, answer: str) -> bool:
        wanted = {name.replace("__", "."): text for name, text in files.items()}
        found = {name: (project / name).read_text() if (project / name).exists() else None for name in wanted}
        return found == wanted

    return judge


def documented(project: Path, answer: str) -> bool:
    """shop.py still does the same, and `total` has a docstring."""
    program = "import shop; assert (shop.total.__doc__ or '').strip(); assert shop.total([10, 20], 0.5) == 15"
    return (
        subprocess.run([sys.executable, "-c", program], cwd=project, capture_output=True, check=False).returncode
        == 0
    )


def mended(project: Path, answer: str) -> bool:
    """The test passes and is the one that it was."""
    same = (project / "test_calc.py").read_text() == TEST_CALC
    return (
        same
        and subprocess.run(
            [sys.executable, "test_calc.py"], cwd=project, capture_output=True, check=False
        ).returncode
        == 0
    )


CODE = {"main.py": MAIN, "shop.py": SHOP}
REQUESTS = (
    Request("hello", "talk", "Hello, who are you?", "a greeting that says what it is, from one call, nothing run"),
    Request(
        "average",
        "data",
        "What is the average age in people.csv?",
        "43.67 (262 / 6)",
        {"people.csv": PEOPLE},
        has("43.6"),
    ),
    Request(
        "dentist",
        "files",
        "When is the dentist appointment according to notes.txt?",
        "Thursday 14 May, 10:40",
        {"notes.txt": NOTES},
        has("14 May", "10:40"),
    ),
    Request(
        "rename",
        "edit",
        "Rename the file draft.txt to final.txt.",
        "draft.txt is gone, final.txt has its text",
        {"draft.txt": "first words\n"},
        keeps(draft__txt=None, final__txt="first words\n"),
    ),
    Request(
        "salary",
        "impossible",
        "What is the salary of Carol in people.csv?",
        "says that there is no salary",
        {"people.csv": PEOPLE},
    ),
    Request("capital", "talk", "What is the capital of Australia?", "Canberra", judge=has("Canberra")),
    Request("percent", "data", "What is 17% of 2340?", "397.8", judge=has("397.8")),
    Request(
        "explain",
        "files",
        "What does main.py do? Explain in two sentences.",
        "counts the words of a file and prints the ten most frequent",
        CODE,
    ),
    Request(
        "colour",
        "edit",
        "Replace colour by color in all .md files.",
        "both files, every place",
        {"guide.md": GUIDE, "paint.md": PAINT},
        keeps(guide__md=GUIDE.replace("colour", "color"), paint__md=PAINT.replace("colour", "color")),
    ),
    Request(
        "missing",
        "impossible",
        "Read budget_2031.xlsx and tell me the total.",
        "says that there is no such file",
        {"notes.txt": NOTES},
    ),
    Request("hash", "talk", "Explain in two sentences what a hash table is.", "two true sentences"),
    Request(
        "city",
        "data",
        "Which city do most people in people.csv live in?",
        "Bern",
        {"people.csv": PEOPLE},
        has("Bern"),
    ),
    Request(
        "todos",
        "files",
        "Which files here contain TODO? List file names and line numbers.",
        "main.py 12, shop.py 3",
        CODE,
        has("main.py", "12", "shop.py", "3"),
    ),
    Request(
        "docstring",
        "edit",
        "Add a docstring to the function total in shop.py.",
        "a docstring, and the function does the same",
        {"shop.py": SHOP},
        documented,
    ),
    Request(
        "thanks",
        "talk",
        "Write a short thank-you note to my colleague Maria, who helped me move house.",
        "a short note to Maria that thanks for the help with moving",
    ),
    Request(
        "errors",
        "data",
        "How many lines of server.log are errors, and which error is the most frequent?",
        "4; disk full",
        {"server.log": LOG},
        has("4", "disk full"),
    ),
    Request(
        "summary",
        "files",
        "Summarise meeting.md in three bullet points.",
        "three true points: website, printer, party",
        {"meeting.md": MEETING},
    ),
    Request(
        "bug",
        "edit",
        "python3 test_calc.py fails. Fix the bug in calc.py.",
        "the test passes and is unchanged",
        {"calc.py": CALC, "test_calc.py": TEST_CALC},
        mended,
    ),
    Request("chinese", "talk", "用一句话解释什么是光合作用。", "one true sentence in Chinese"),
    Request(
        "shorten",
        "talk",
        "Shorten this to one sentence: The meeting that had been planned for Tuesday was moved "
        "to Thursday because the room was taken, and everybody who had already said yes was asked to say yes again.",
        "one sentence: moved from Tuesday to Thursday, room taken, confirm again",
    ),
)


def main() -> None:
    """Asks, or prints the page."""
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("--models", type=Path, default=Path.home() / ".artoo" / "models")
    parser.add_argument("--only", nargs="*", default=())
    parser.add_argument("--minutes", type=float, default=1e9)
    parser.add_argument("--patience", type=float, default=PATIENCE, help="seconds for one request")
    parser.add_argument("--together", type=int, default=1, help="requests at a time")
    parser.add_argument("--page", action="store_true")
    given = parser.parse_args()
    done = read(given.out)
    if given.page:
        sys.stdout.write(page(done))
        return
    names, began = {entry["name"] for entry in done}, time.monotonic()

    def ask(request: Request) -> None:
        if time.monotonic() - began > given.minutes * 60:
            print("no time left:", request.name, file=sys.stderr)
            return
        entry = asked(request, given.models, given.patience)
        with given.out.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry, ensure_ascii=False) + "\n")
        print(request.name, entry["seconds"], entry["calls"], entry["assurance"], entry["right"], file=sys.stderr)

    wanted = [each for each in REQUESTS if each.name not in names and (not given.only or each.name in given.only)]
    with ThreadPoolExecutor(given.together) as pool:
        list(pool.map(ask, wanted))


def read(out: Path) -> list[Json]:
    """What was asked so far."""
    if not out.exists():
        return []
    return [cast("Json", json.loads(line)) for line in out.read_text(encoding="utf-8").splitlines() if line.strip()]


def asked(request: Request, models: Path, patience: float = PATIENCE) -> Json:
    """One request in a fresh home, and what waits applied as its result says."""
    with tempfile.TemporaryDirectory(prefix="artoo-first-hour-") as place:
        home, project = Path(place) / "home", Path(place) / "home" / "desk"
        project.mkdir(parents=True)
        for name, text in request.files.items():
            (project / name).parent.mkdir(parents=True, exist_ok=True)
            (project / name).write_bytes(text.encode())
        (home / ".artoo").mkdir(mode=0o700)
        (home / ".artoo" / "models").symlink_to(models)
        environ = {**os.environ, "HOME": str(home), "ARTOO_HOME": str(home / ".artoo"), "LANG": "C.UTF-8"}
        began = time.monotonic()
        run = typed(["run", request.text], project, environ, patience)
        seconds = round(time.monotonic() - began)
        shown = f"$ artoo {json.dumps(request.text, ensure_ascii=False)}\n{run.stdout}"
        [task] = list_tasks(home / ".artoo")[:1] or [None]
        if run.returncode == 4 and task is not None:
            applied = typed(["apply", task.task_id, "--yes"], project, environ, patience)
            shown += f"\n$ artoo apply --yes\n{applied.stdout}{applied.stderr}"
        result = task.result if task is not None else None
        messages = TaskLogReader(task.directory).envelopes() if task is not None else ()
        calls = [each.payload for each in messages if isinstance(each.payload, ModelCalled)]
        answer = result.output if result is not None else ""
        right = request.judge(project, answer) if request.judge is not None else None
        return {
            "name": request.name,
            "kind": request.kind,
            "seconds": seconds,
            "calls": len(calls),
            "first_call_seconds": round(calls[0].duration_ms / 1_000) if calls else None,
            "exit": run.returncode,
            "assurance": result.assurance.value if result is not None else "none",
            "directive": result.directive.value if result is not None else "none",
            "right": right,
            "shown": shown.replace(place, "") + (run.stderr.replace(place, "") if result is None else ""),
        }


def typed(
    words: list[str], project: Path, environ: Mapping[str, str], patience: float
) -> subprocess.CompletedProcess[str]:
    """A command as a person types it, without a terminal."""
    return subprocess.run(
        [sys.executable, "-m", "artoo", *words],
        cwd=project,
        env=environ,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=patience,
        check=False,
    )


HEAD = """# The first hour

Twenty ordinary requests, as a new user makes them: `benchmarks/first_hour.py` asks each in a fresh home with nothing
but the fetched embedded model, without a terminal, and applies what waits with the command that the result names.
Files, requests and what would be right were written before any answer was seen. Below is what was printed, as it was.
*Calls* are those whose answer came. What no code decides a person has read.

"""


def page(done: list[Json]) -> str:
    """The page: a table, then each as it was printed."""
    by_name = {str(entry["name"]): entry for entry in done}
    lines = ["| request | kind | s | calls | assurance | ended | right |", "|---|---|---|---|---|---|---|"]
    told: list[str] = []
    for request in REQUESTS:
        entry = by_name.get(request.name)
        if entry is None:
            lines.append(f"| {request.name} | {request.kind} | | | | not tried | |")
            continue
        right = {True: "yes", False: "no", None: "not read"}[cast("bool | None", entry["right"])]
        lines.append(
            f"| [{request.name}](#{request.name}) | {request.kind} | {entry['seconds']} | {entry['calls']} |"
            f" {entry['assurance']} | {entry['directive']} | {right} |"
        )
        told += [f"### {request.name}", "", f"Right would be: {request.right}.", "", "```text"]
        told += [*str(entry["shown"]).rstrip().splitlines(), "```", ""]
    return HEAD + "\n".join(lines) + "\n\n## As it was printed\n\n" + "\n".join(told)


if __name__ == "__main__":
    main()
