"""`search_text`: lines of files that match a regular expression or hold a text."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from artoo.contracts.errors import ToolError
from artoo.contracts.execution import CallStatus
from artoo.ports.sandbox import Roots
from artoo.ports.workspace import Files
from artoo.tools.builtin.search_text import MAX_FILE_BYTES, SearchText
from artoo.tools.files.walk import WalkLimits
from artoo.workspace.files.rooted import RealFiles


@pytest.fixture
def tool(tmp_path: Path) -> SearchText:
    """The tool over a small project."""
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "a.env").write_text("MODE=x\nAPI_KEY=zz91\n")
    (tmp_path / "b.txt").write_text("ask for an API key\n")
    return SearchText(Roots(home=tmp_path, workspace=tmp_path, project=tmp_path))


async def test_it_names_file_and_line(tool: SearchText) -> None:
    """The search is case-sensitive; each match has its file, line number and line."""
    outcome = await tool.run({"pattern": "API_KEY="})
    assert outcome.output.splitlines() == ["1 file contains API_KEY=", "conf/a.env:2: API_KEY=zz91"]
    assert (outcome.status, outcome.result_count, outcome.truncated) == (CallStatus.OK, 1, False)


async def test_a_search_that_stopped_early_does_not_say_that_nothing_is_there(tool: SearchText) -> None:
    """The status is a timeout, and the text names no count of files."""
    outcome = await replace(tool, limits=WalkLimits(entries=1)).run({"pattern": "nowhere"})
    assert outcome.status is CallStatus.TIMEOUT
    assert outcome.output.splitlines()[0] == "not searched to the end, and nothing found so far: nowhere"


async def test_lines_around_a_match_are_shown(tool: SearchText, tmp_path: Path) -> None:
    """Matches that are near share them, only matches are counted, and the path of the file is written once."""
    (tmp_path / "c.txt").write_text(
        "".join(f"line {number}{' hit' if number in (3, 5, 9) else ''}\n" for number in range(1, 12))
    )
    outcome = await tool.run({"pattern": "hit", "context": 1})
    told = ["c.txt:", "2- line 2", "3: line 3 hit", "4- line 4", "5: line 5 hit", "6- line 6"]
    told += ["--", "8- line 8", "9: line 9 hit", "10- line 10"]
    assert outcome.output.splitlines()[1:] == told
    assert outcome.result_count == 3


async def test_what_is_no_text_is_named(tool: SearchText, tmp_path: Path) -> None:
    """That none was found says nothing of a file that is no text: it is named, also beside matches."""
    (tmp_path / "scan.pdf").write_bytes(b"%PDF\0\1Zahnarzt\0")
    for pattern, lines in (("Zahnarzt", 0), ("API_KEY=", 1)):
        outcome = await tool.run({"pattern": pattern})
        assert outcome.output.splitlines()[1 + lines :] == ["(not searched, as they are no text: scan.pdf)"]
        assert outcome.result_count == lines


class _Unreadable(RealFiles):
    """Files of which one directory does not open."""

    def names(self, directory: Path) -> tuple[str, ...]:
        if directory.name == "closed":
            raise PermissionError(13, "Permission denied")
        return super().names(directory)


async def test_what_cannot_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file and a directory that the system does not open were not searched either."""
    (tmp_path / "closed").mkdir()
    (tmp_path / "closed.txt").write_text("needle")
    roots = Roots(home=tmp_path, workspace=tmp_path, project=tmp_path)

    def denied(files: Files, path: Path, limit: int) -> tuple[bytes, int]:
        raise PermissionError(13, f"{path} is not read, nor {limit} bytes of it")

    monkeypatch.setattr("artoo.tools.builtin.search_text.read_limited", denied)
    outcome = await SearchText(roots, _Unreadable).run({"pattern": "needle"})
    assert outcome.output.splitlines()[1:] == ["(not searched, as they cannot be read: closed.txt, closed/)"]


async def test_the_rest_of_a_long_file_is_told(tool: SearchText, tmp_path: Path) -> None:
    """Of a file beyond the bound only the beginning is searched, and where it is cut harms no letter before it."""
    (tmp_path / "long.log").write_text("grün\n" + "x" * (MAX_FILE_BYTES - 7) + "ü\nneedle\n")
    outcome = await tool.run({"pattern": "needle"})
    assert outcome.output.splitlines() == [
        "0 files contain needle",
        "(searched in their first 4 MiB only: long.log)",
    ]
    outcome = await tool.run({"pattern": "grün"})
    assert outcome.result_count == 1


@pytest.mark.parametrize(
    ("pattern", "matches"), [(r"API.KEY", 1), ("(?i)api_key", 1), ("^MODE", 1), ("f(x", 0), ("API_KEY=zz9[", 0)]
)
async def test_a_pattern_is_a_regular_expression_or_text(tool: SearchText, pattern: str, matches: int) -> None:
    """What is no regular expression is searched as it is, and the output says so."""
    outcome = await tool.run({"pattern": pattern})
    assert outcome.result_count == matches
    assert ("searched as plain text" in outcome.output) == (pattern in ("f(x", "API_KEY=zz9["))


async def test_path_and_glob_narrow_the_search(tool: SearchText, tmp_path: Path) -> None:
    """A folder, one file, or files with such names."""
    (tmp_path / "conf" / "b.txt").write_text("MODE=y\n")
    (tmp_path / "c.txt").write_text("MODE=z\n")
    for more, lines in (
        ({"path": "conf"}, ["conf/a.env:1: MODE=x", "conf/b.txt:1: MODE=y"]),
        ({"path": "conf/b.txt"}, ["conf/b.txt:1: MODE=y"]),
        ({"glob": "*.env"}, ["conf/a.env:1: MODE=x"]),
        ({"path": "conf", "glob": "*.txt"}, ["conf/b.txt:1: MODE=y"]),
    ):
        assert (await tool.run({"pattern": "MODE", **more})).output.splitlines()[1:] == lines
    with pytest.raises(ToolError, match="there is no nowhere"):
        await tool.run({"pattern": "MODE", "path": "nowhere"})


async def test_an_expression_without_end_is_cut_off(
    tool: SearchText, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Backtracking is bounded, and the file is named as not searched to its end."""
    monkeypatch.setattr("artoo.tools.builtin.search_text._MATCH_SECONDS", 0.05)
    (tmp_path / "a.txt").write_text("a" * 5_000 + "!\n")
    outcome = await tool.run({"pattern": r"(a|aa)+$", "path": "a.txt"})
    assert "(not searched to the end, as the expression took too long: a.txt)" in outcome.output
