"""An ablation is paired: what a heuristic does not touch is the same in both runs, to the last byte."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from scripts import script

RUNNER = """
import argparse, json, os, pathlib, subprocess, tempfile
parser = argparse.ArgumentParser()
for name in "runner cmd tasks out wall calls".split():
    parser.add_argument("--" + name)
given = parser.parse_args()
work = tempfile.mkdtemp(prefix="ev_")
command = given.cmd.replace("{prompt}", given.tasks).replace("{work}", work)
said = subprocess.run(["bash", "-c", command], cwd=work, stdout=subprocess.PIPE).stdout
reply = json.loads(said)["answer"]
made = pathlib.Path(work, "made.txt").exists()
row = {"task": given.tasks, "pass": made, "calls": 1, "completion_tokens": reply}
row["false_success"] = "wrong" in given.tasks
row["end"] = "exit2" if "refused" in given.tasks else "ok"
pathlib.Path(given.out).write_text(json.dumps(row) + "\\n")
"""

ARTOO = """#!{python}
import http.client, json, os, pathlib, sys
task, off = sys.argv[-1], os.environ.get("ARTOO_CONTROL__WITHOUT", "")
heuristic = off if "second_way" in off and "touched" in task else ""
place = [os.getcwd(), os.environ["HOME"], os.environ["ARTOO_HOME"], os.listdir(os.environ["HOME"])]
pathlib.Path(os.environ["HOME"], "memory").touch()
pathlib.Path("made.txt").touch()
server = http.client.HTTPConnection(os.environ["EVAL_UPSTREAM"])
server.request("POST", "/v1/chat/completions", json.dumps([place, heuristic, task]))
print(json.dumps({{"answer": json.loads(server.getresponse().read()), "assurance": "agreed"}}))
"""


class _Model(BaseHTTPRequestHandler):
    """Gives another number each time."""

    number = 0

    def log_message(self, *told: object, **more: object) -> None:
        """Says nothing."""

    def do_POST(self) -> None:
        _Model.number += 1
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"%d" % _Model.number)


@pytest.fixture
def model() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Model) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture
def ablate(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    return script("ablate", monkeypatch)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A runner, and an artoo that asks the model once and says where it is."""
    (tmp_path / "run.py").write_text(RUNNER)
    artoo = tmp_path / "artoo"
    artoo.write_text(ARTOO.format(python=sys.executable))
    artoo.chmod(0o755)
    return tmp_path


def series(ablate: ModuleType, folder: Path, *tasks: str, one_home: bool = False) -> Any:
    place = folder / "place"
    place.mkdir(exist_ok=True)
    return ablate.Series(folder, ablate.Place(place), folder / "artoo", tasks, 12, 60, one_home)


@pytest.mark.parametrize("one_home", [False, True])
def test_only_what_a_heuristic_touches_is_asked_anew(
    ablate: ModuleType, folder: Path, model: str, one_home: bool
) -> None:
    """Folders and homes have the same names in every run, so that the untouched task asks nothing new."""
    both = series(ablate, folder, "a1_plain", "b1_touched", one_home=one_home)
    with ablate.recording(folder / "replies.sqlite", model) as recorder:
        plain, touched = both.run(ablate.ALL_ON, recorder)
        same, differs = both.run("second_way", recorder)
        assert recorder.replies.made_for("second_way") == 1
    assert same == plain and plain.right and differs.written != touched.written


def test_a_run_that_was_cut_off_goes_on(ablate: ModuleType, folder: Path, model: str) -> None:
    """Recorded tasks are not run again; the rest are."""
    with ablate.recording(folder / "replies.sqlite", model) as recorder:
        for tasks in (("a1_plain",), ("a1_plain", "a2_wrong")):
            ran = series(ablate, folder, *tasks).run(ablate.ALL_ON, recorder)
    assert [each.task for each in ran] == ["a1_plain", "a2_wrong"]
    assert len((folder / "place" / "all-on.jsonl").read_text().splitlines()) == 2
    assert not ran[0].false and ran[1].false and ran[1].sure


def test_a_run_that_artoo_refuses_is_no_result(ablate: ModuleType, folder: Path, model: str) -> None:
    """Settings that artoo does not take end the series: such a run would look like a heuristic that earns all."""
    with (
        ablate.recording(folder / "replies.sqlite", model) as recorder,
        pytest.raises(SystemExit, match="refused to begin a1_refused in the run second_way"),
    ):
        series(ablate, folder, "a1_refused").run("second_way", recorder)
    assert not (folder / "place" / "second_way.jsonl").exists()


def test_the_table_counts_what_was_won_and_lost_and_the_tasks_apart(ablate: ModuleType) -> None:
    """A heuristic that wins one task and loses another earns nothing: the table shows both."""

    def ran(task: str, right: bool) -> object:
        return ablate.Ran(task, right, not right, False, 3, 100, 20)

    with_all = [ran("a1_x", True), ran("a2_x", False), ran("b1_x", True)]
    without = [ran("a1_x", False), ran("a2_x", True), ran("b1_x", True)]
    everything, rest, apart = ablate.table({ablate.ALL_ON: with_all, "second_way": without}, ["b1"]).split("\n\n")
    assert everything.splitlines()[-1].split()[:5] == ["second_way", "2/3", "+1", "-1", "1"]
    assert rest.splitlines()[-1].split()[:4] == ["second_way", "1/2", "+1", "-1"]
    assert apart.splitlines()[-1].split()[:4] == ["second_way", "1/1", "+0", "-0"]
