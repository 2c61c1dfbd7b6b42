from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from artoo.cli.commands.memory_command import memory as command
from artoo.cli.commands.memory_command import pair_of
from artoo.cli.views.memory_view import explanation_lines
from artoo.contracts.memory import Megram, MegramState, MemoryAction, Potentials, TLayerProposal
from artoo.contracts.tags import LOCAL, Pair, macro_pair
from artoo.memory import tables
from artoo.memory.dreams import Dreams
from artoo.memory.engines import engine_at
from artoo.memory.views import Explanation, Share
from artoo.runtime.app.system import SystemClock
from artoo.store.query import Query

NOW = datetime.now(UTC)
FIND = Pair("tool:shell:find", "path:/home/me")


def megram(number: int, pair: Pair, sigma: float, *, level: str = "M", days: float = 0.0) -> Megram:
    """An experience of some days ago."""
    return Megram.model_validate(
        {
            "id": f"id-{number}",
            "level": level,
            "created_at": NOW - timedelta(days=days),
            "space": pair.space,
            "entity": pair.entity,
            "content": f"experience {number}\x1b[31m",
            "state": MegramState.ACCEPT,
            "f": 0.9,
            "sigma": sigma,
            "k": 0.0 if level == "C" else 0.05,
        }
    )


def change(home: Path, work: Callable[[Query], object]) -> None:
    """One transaction."""
    engine = engine_at(home / "memory")
    engine.write(work)
    engine.close()


async def proposed(home: Path, proposal: TLayerProposal) -> None:
    """The Dreamer has an idea."""
    dreams = Dreams(engine_at(home / "memory"), SystemClock())
    async with dreams.turn():
        await dreams.propose(proposal, "proposed:x")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home whose memory knows a bad pair, a good tool, a rule, and an open proposal."""
    told = [megram(1, FIND, -1.0, days=20), megram(2, FIND, -1.0), megram(3, Pair("tool:glob", LOCAL), 1.0)]
    told.append(megram(4, FIND, -1.0, level="C"))
    change(tmp_path, lambda query: tables.add(query, told))
    asyncio.run(proposed(tmp_path, TLayerProposal(id="p-1", proposed_at=NOW, text="Prefer glob.")))
    return tmp_path


def call(home: Path, *arguments: str, given: str | None = None) -> Result:
    """Runs `artoo memory …`."""
    return CliRunner().invoke(command, list(arguments), env={"ARTOO_HOME": str(home)}, input=given)


def ok(home: Path, *arguments: str, given: str | None = None) -> str:
    """Runs it and expects success."""
    result = call(home, *arguments, given=given)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_pyramid(home: Path) -> None:
    """Without a command: counts by level, the strongest pairs, proposals; as JSON too."""
    shown = ok(home)
    assert "MUST NOT" in shown and "tool:shell:find" in shown and "Prefer glob." in shown
    found = json.loads(ok(home, "--json"))
    assert found["levels"] == {"M": 3, "K": 0, "C": 1}
    assert found["strongest"]["exploit"][0]["space"] == "tool:glob"


@pytest.mark.parametrize(
    ("words", "pair"),
    [
        (("tool:shell:find", "path:/home/me"), FIND),
        (("tool:shell:find path:/home/me",), FIND),
        (("tool:x", "path:/a", "b"), Pair("tool:x", "path:/a b")),
        (("tool:x", "path:a.txt"), Pair("tool:x", f"path:{Path.cwd()}/a.txt")),
        (("tool:glob",), Pair("tool:glob", LOCAL)),
        (("find", "all", "pdf"), macro_pair("find all pdf")),
    ],
)
def test_pairs_as_people_write_them(words: tuple[str, ...], pair: Pair) -> None:
    """A pair is two tags, a tool, or the words of a request."""
    assert pair_of(words) == pair


def test_query(home: Path) -> None:
    """A query shows potentials and rules, with nothing in them that commands the terminal."""
    shown = ok(home, "query", *FIND)
    assert "MUST NOT" in shown and "id-4" in shown and "\x1b" not in shown
    found = json.loads(ok(home, "query", *FIND, "--json"))
    assert found["potentials"]["action"] == "avoid"
    assert [rule["id"] for rule in found["rules"]] == ["id-4"]


def test_a_program_as_a_target_is_shortened(home: Path) -> None:
    """A tool is held by what it was given, such as a program: one line shows where it begins, JSON all."""
    program = "import csv\n" + "print(sum(int(row['price']) for row in rows))\n" * 20
    entries = [megram(number, Pair("tool:python", f"path:{program}"), -1.0) for number in (7, 8)]
    change(home, lambda query: tables.add(query, entries))
    named = next(line for line in ok(home).splitlines() if "tool:python" in line)
    assert "path:import csv print(sum(int(row['price'])" in named and len(named) < 180
    strongest = json.loads(ok(home, "--json"))["strongest"].values()
    assert f"path:{program}" in [each["entity"] for entries in strongest for each in entries]


def test_explain(home: Path) -> None:
    """Explaining names every megram's share; the shares add up to the potentials."""
    found = json.loads(ok(home, "explain", *FIND, "--json"))
    assert [share["id"] for share in found["shares"]] == ["id-2", "id-1"]
    assert sum(share["attention"] for share in found["shares"]) == pytest.approx(found["potentials"]["attention"])
    assert found["curve"][-1]["attention"] == pytest.approx(found["potentials"]["attention"])
    shown = ok(home, "explain", *FIND)
    assert "attention" in shown and "id-1" in shown
    assert "no evidence" in ok(home, "explain", "tool:nothing")


def test_an_explanation_names_notes_as_other_commands_take_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """By their whole ids, however narrow the terminal: two of one millisecond differ in their last characters."""
    monkeypatch.setenv("COLUMNS", "80")
    note = megram(1, FIND, -1.0).model_copy(update={"id": "01a2215b-06df-749d-9dbb-aec2a32fbbe7"})
    live = Potentials(space=FIND.space, entity=FIND.entity, attention=0.9, decision=-0.9, action=MemoryAction.AVOID)
    lines = explanation_lines(Explanation(live, (Share(note, 0.9, -0.9),), (), 0))
    assert any(note.id in line for line in lines)


def test_export_and_import(home: Path, tmp_path: Path) -> None:
    """What is exported can be imported elsewhere, once; a broken line is named and what came before stays."""
    lines = ok(home, "export").splitlines()
    assert len(lines) == 4
    other = tmp_path / "other"
    other.mkdir()
    file = tmp_path / "lines"
    file.write_text("\n".join([*lines[:2], "{oops", *lines[2:]]))
    result = call(other, "import", str(file))
    assert "Line 3 is no megram" in str(result.exception)
    assert "pydantic" not in str(result.exception) and "\n" not in str(result.exception)
    file.write_text("\n".join(lines) + "\n\n")
    assert "2 entries added, 2 known already" in ok(other, "import", str(file))
    assert sorted(ok(other, "export").splitlines()) == sorted(lines)
    assert json.loads(ok(other, "verify", "--check", "--json"))["sound"]


def test_forget(home: Path) -> None:
    """One entry or a whole pair can be forgotten, after a question; what is not there is said so."""
    assert call(home, "forget", "id-1", given="n\n").exit_code == 1
    assert call(home, "forget", "", "--yes").exit_code == 2
    assert "Forgot 1 entry" in ok(home, "forget", "id-1", given="y\n")
    assert "Forgot 2 entries" in ok(home, "forget", *FIND, "--yes")
    assert "holds nothing" in str(call(home, "forget", *FIND, "--yes").exception)
    assert json.loads(ok(home, "query", *FIND, "--json"))["rules"] == []


def test_feedback(home: Path) -> None:
    """A person's word against a rule is dissonance, written at once."""
    assert "σ = +1" in ok(home, "feedback", "id-4", "bad", "it works now")
    found = json.loads(ok(home, "query", *FIND, "--json"))["potentials"]
    assert found["attention"] == pytest.approx(2.13, abs=0.01)
    assert "no entry nobody" in str(call(home, "feedback", "nobody", "bad", "why").exception)
    assert call(home, "feedback", "id-4", "good", "why").exit_code == 2


def test_verify(home: Path) -> None:
    """`--check` only looks and fails; without it the sums are put right."""
    assert "agree" in ok(home, "verify")
    change(home, lambda query: query.run("DELETE FROM memory_sums WHERE space = ?", (b"tool:shell:find",)))
    assert call(home, "verify", "--check").exit_code == 1
    assert "Repaired." in ok(home, "verify")
    assert "agree" in ok(home, "verify", "--check")


def test_dream(home: Path) -> None:
    """A pass can be run by hand; it forgets what has faded."""
    change(home, lambda query: tables.add(query, [megram(9, FIND, 1.0, days=100)]))
    assert json.loads(ok(home, "dream", "--json"))["forgotten"] == 1
    assert "0 forgotten" in ok(home, "dream")
    assert "Dream of" in ok(home)


def test_proposals(home: Path) -> None:
    """A proposal changes nothing until the operator accepts it; then it is a read-only file of the T layer."""
    assert "p-1" in ok(home, "proposals")
    assert not (home / "thinking").exists()
    ok(home, "accept", "p-1")
    file = home / "thinking" / "p-1.md"
    assert (file.read_text(), file.stat().st_mode & 0o777) == ("Prefer glob.\n", 0o400)
    assert json.loads(ok(home, "proposals", "--json")) == []
    assert "accepted already" in str(call(home, "refuse", "p-1").exception)
