"""`artoo store` and the team's commands on several homes that share one store."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from artoo.cli.main import main
from artoo.store.address import StoreAddress

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """`run("laptop", "task", "list")`: a command on a machine, which is a home of its own."""
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")

    def call(machine: str, *words: str) -> tuple[int, str, str]:
        monkeypatch.setenv("ARTOO_HOME", str(tmp_path / machine))
        capsys.readouterr()
        code = main(list(words))
        said = capsys.readouterr()
        return code, said.out, said.err

    return call


def configured(tmp_path: Path, machine: str, store: StoreAddress, *projects: Path) -> None:
    """Lets a machine share the store."""
    (tmp_path / machine).mkdir(exist_ok=True)
    listed = json.dumps([str(project) for project in projects])
    (tmp_path / machine / "config.yaml").write_text(f"store: {store.url}\nprojects: {listed}\n")


def test_two_homes_share_a_board(run: Run, store: StoreAddress, tmp_path: Path) -> None:
    """What one machine adds, the other lists, decides about and writes letters for."""
    for machine in ("laptop", "server"):
        configured(tmp_path, machine, store)
    assert run("laptop", "agent", "new", "ada", "--role", "clerk")[0] == 0
    code, added, _ = run("laptop", "task", "add", "count", "the", "files", "--json")
    assert code == 0
    task = json.loads(added)["id"]
    listed: list[Any] = json.loads(run("server", "task", "list", "--json")[1])
    assert [one["id"] for one in listed] == [task]
    assert run("server", "task", "move", task, "--priority", "critical")[0] == 0
    assert json.loads(run("laptop", "task", "show", task, "--json")[1])["priority"] == "critical"
    assert run("server", "mail", "send", "ada", "hello")[0] == 0
    status = json.loads(run("laptop", "status", "--json")[1])
    assert status["agents"][0]["unread"] == 1


def test_a_project_is_filed_under_its_remote(run: Run, store: StoreAddress, tmp_path: Path) -> None:
    """A clone's task is filed under host and path of its remote, without what may be a secret."""
    configured(tmp_path, "laptop", store)
    subprocess.run(["git", "init", "-q", "."], check=True)
    subprocess.run(["git", "remote", "add", "origin", "https://me:token@Git.Example.org/team/site.git"], check=True)
    code, added, _ = run("laptop", "task", "add", "mend it", "--json")
    assert code == 0
    assert json.loads(added)["project"] == "git.example.org/team/site"


def test_a_home_moves_in_and_another_out(run: Run, store: StoreAddress, tmp_path: Path) -> None:
    """import and export print the same counts and hashes as check, and refuse a place that is not empty."""
    assert run("old", "agent", "new", "ada", "--role", "clerk")[0] == 0
    assert run("old", "task", "add", "count the files")[0] == 0
    code, moved, _ = run("old", "store", "import", store.url, "--json")
    assert code == 0
    assert run("new", "store", "check", store.url, "--json")[1] == moved
    assert run("new", "store", "export", store.url, "--json")[1] == moved
    assert [one["text"] for one in json.loads(run("new", "task", "list", "--json")[1])] == ["count the files"]
    code, _, said = run("old", "store", "import", store.url)
    assert (code, "has books already" in said) == (2, True)
    assert "1 rows" in run("old", "store", "check", store.url)[1]


def test_init_sets_a_store_up_once(run: Run, store: StoreAddress, tmp_path: Path) -> None:
    """A store that is up to date stays as it is, and the command says so."""
    code, said, _ = run("laptop", "store", "init", store.url)
    assert (code, "as it was" in said) == (0, True)


@pytest.mark.parametrize("words", [("store", "check"), ("store", "init")])
def test_without_a_store_it_is_asked_for(run: Run, words: tuple[str, str]) -> None:
    """No address and no setting: the error shows what one looks like."""
    code, _, said = run("laptop", *words)
    assert (code, "postgresql://" in said) == (2, True)


def test_a_store_that_is_not_there_is_named(run: Run, tmp_path: Path) -> None:
    """The error has the address and what to do."""
    code, _, said = run("laptop", "store", "init", f"postgresql:///artoo?host={tmp_path}")
    assert (code, "Check that it runs" in " ".join(said.split())) == (2, True)
