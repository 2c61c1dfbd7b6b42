"""`find` on personal files becomes an index search, and nothing else does."""

from __future__ import annotations

from pathlib import Path

import pytest

from artoo.ports.sandbox import Roots
from artoo.tools.shell.find_redirect import index_query

ROOTS = Roots(home=Path("/home/u"), workspace=Path("/home/u/artoo_workspace"), project=Path("/home/u/code/p"))


@pytest.mark.parametrize(
    ("command", "folders"),
    [
        ("find ~ -name '*.pdf'", ["/home/u"]),
        ("find $HOME/Documents -maxdepth 3 -iname report.txt", ["/home/u/Documents"]),
        ('find "${HOME}/My Files" ~/x/ -type f -name "a*" -print 2>/dev/null', ["/home/u/My Files", "/home/u/x"]),
        ("/usr/bin/find /home -mindepth 1 -type d -name Photos", ["/home"]),
        ("find /Volumes/Disk -name x", ["/Volumes/Disk"]),
    ],
)
def test_a_pure_search_by_name_on_personal_paths_becomes_a_query(command: str, folders: list[str]) -> None:
    """Name, kind and places are taken over; depth limits are stripped."""
    query = index_query(command, ROOTS)
    assert query is not None
    assert [str(folder) for folder in query.folders] == folders


@pytest.mark.parametrize(
    "command",
    [
        "find . -name '*.py'",
        "find /home/u/code/p -name x",
        "find ~/artoo_workspace -name x",
        "find /etc -name passwd",
        "find ~ -name x | wc -l",
        "find ~ -name x -delete",
        "find ~ -name x -mtime -1",
        "find ~ -type f",
        "find ~ -name x > out.txt",
        "find ~ -name $X",
        "cd ~ && find . -name x",
        "find ~ -name",
        "find ~ -name '{a,b}'",
    ],
)
def test_every_other_command_stays_what_it_is(command: str) -> None:
    """Pipelines, actions, other tests, other places and what is not understood run as they are."""
    assert index_query(command, ROOTS) is None
