"""`find_text`: lines of project files that contain a phrase."""

from __future__ import annotations

from pathlib import Path

import pytest

from artoo.contracts.errors import ToolError
from artoo.contracts.execution import CallStatus
from artoo.ports.sandbox import Roots
from artoo.tools.builtin.find_text import MAX_MATCHES, FindText


@pytest.fixture
def tool(tmp_path: Path) -> FindText:
    """The tool over a small project."""
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "a.env").write_text("MODE=x\nAPI_KEY=zz91\n")
    (tmp_path / "b.txt").write_text("ask for an API key\n")
    (tmp_path / "binary").write_bytes(b"\0\1API_KEY=\0")
    return FindText(Roots(home=tmp_path, workspace=tmp_path, project=tmp_path))


async def test_it_names_file_and_line(tool: FindText) -> None:
    """The phrase is literal and case-sensitive; each match has its file, line number and line."""
    outcome = await tool.run({"phrase": "API_KEY="})
    assert outcome.output.splitlines() == ["1 file contains API_KEY=", "conf/a.env:2: API_KEY=zz91"]
    assert (outcome.status, outcome.result_count, outcome.truncated) == (CallStatus.OK, 1, False)


async def test_nothing_found_is_an_answer(tool: FindText) -> None:
    """No match is a result of zero, not an error."""
    outcome = await tool.run({"phrase": "nowhere"})
    assert (outcome.status, outcome.result_count) == (CallStatus.OK, 0)


async def test_a_pattern_of_file_names_is_refused(tool: FindText) -> None:
    """Names are another tool's business, and the message says whose."""
    with pytest.raises(ToolError, match="glob"):
        await tool.run({"phrase": "src/**/*.py"})


async def test_matches_are_bounded(tool: FindText, tmp_path: Path) -> None:
    """More matches than the bound are cut, and the record says so."""
    (tmp_path / "many.txt").write_text("needle\n" * (MAX_MATCHES + 5))
    outcome = await tool.run({"phrase": "needle"})
    assert outcome.result_count == MAX_MATCHES
    assert outcome.truncated
    assert outcome.reason is not None
