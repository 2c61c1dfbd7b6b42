"""Standing permissions: read strictly, matched on kind and path."""

from __future__ import annotations

from pathlib import Path

import pytest

from artoo.contracts.confirmation import AskedAct
from artoo.contracts.errors import ConfigurationError
from artoo.tools.approval.policy import Policies, parse_policy

PROJECT, HOME = Path("/home/me/work [1]"), Path("/home/me")


@pytest.mark.parametrize(
    ("line", "verb", "target", "covered"),
    [
        ("overwrite out/*.csv", "edits", f"{PROJECT}/out/deep/a.csv", False),
        ("overwrite out/*.csv", "edits", f"{PROJECT}/a.csv", False),
        ("edits out/*.csv", "edits", f"{PROJECT}/out/a.csv", True),
        ("history .git/**", "history", f"{PROJECT}/.git/refs/heads/main", True),
        ("history .git/**", "delete", f"{PROJECT}/.git/refs/heads/main", False),
        ("overwrite out/*.csv", "delete", f"{PROJECT}/out/a.csv", False),
        ("overwrite out/*.csv", "edits", "/home/me/work 1/out/a.csv", False),
        ("create notes/**", "create", f"{PROJECT}/notes/a/b.txt", True),
        ("delete *.tmp", "delete", f"{PROJECT}/a.tmp", True),
        ("delete *.tmp", "delete", f"{PROJECT}/sub/a.tmp", False),
        ("delete *.tmp", "delete", "/elsewhere/a.tmp", False),
        ("delete ~/old/*", "delete", "/home/me/old/x", True),
        ("delete /srv/data/**", "delete", "/srv/data/x/y", True),
        ("delete /srv/data/**", "delete", "/srv/database", False),
        ("mode bin/*.sh", "mode", f"{PROJECT}/bin/a.sh", True),
        ("overwrite a.txt", "edits", f"{PROJECT}/a\\nb.txt", False),
        ("network api.example.org", "network", "api.example.org", True),
        ("network *.example.org", "network", "api.example.org", True),
        ("network *.example.org", "network", "example.org.evil.com", False),
        ("recipient *@example.org", "recipient", "bob@example.org", True),
        ("tool mcp:notes:search", "tool", "mcp:notes:search the query", True),
        ("tool mcp:notes:*", "tool", "mcp:notes:delete x", True),
        ("tool mcp:notes:search", "tool", "mcp:notes:delete x", False),
        ("tool mcp:notes:*", "start", "mcp:notes", False),
    ],
)
def test_what_a_line_covers(line: str, verb: str, target: str, covered: bool) -> None:
    """A line covers acts of its kind on what it names, and nothing beside it."""
    policies = Policies.parse([line], PROJECT, HOME)
    assert policies.covering([AskedAct(verb=verb, target=target)]) == ((line,) if covered else ())


def test_every_part_of_an_act_must_be_covered() -> None:
    """An act with one part that no line names is not permitted; together lines may permit it."""
    acts = [AskedAct(verb="edits", target=f"{PROJECT}/a.csv"), AskedAct(verb="delete", target=f"{PROJECT}/b.csv")]
    assert Policies.parse(["overwrite *.csv"], PROJECT, HOME).covering(acts) == ()
    both = Policies.parse(["edits *.csv", "delete b.csv", "delete c.csv"], PROJECT, HOME)
    assert both.covering(acts) == ("edits *.csv", "delete b.csv")
    assert both.covering([]) == ()


def test_sensitive_paths_must_be_named_in_full() -> None:
    """A wildcard never covers a start-up file or a place for keys."""
    act = AskedAct(verb="edits", target="/home/me/.bashrc", sensitive=True)
    assert Policies.parse(["overwrite ~/.bash*"], PROJECT, HOME).covering([act]) == ()
    assert Policies.parse(["overwrite ~/.bashrc"], PROJECT, HOME).covering([act])


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("everything", "does not begin with a kind"),
        ("allow x", "does not begin with a kind"),
        ("", "does not begin with a kind"),
        ("overwrite", "names no path"),
        ("overwrite *", "cover everything"),
        ("delete **", "cover everything"),
        ("delete **/*", "cover everything"),
        ("delete /", "cover everything"),
        ("delete ~/**", "cover everything"),
        ("delete /home/me/**", "cover everything"),
        ("delete ../x", "'..'"),
        ("network *", "not a host"),
        ("network http://x/", "not a host"),
        ("tool *", "not the name of a tool"),
        ("tool mcp:*", "not the name of a tool"),
        ("recipient bob", "not a mail address"),
    ],
)
def test_lines_that_are_refused(line: str, said: str) -> None:
    """There is no blanket yes, and a mistake is named with an example."""
    with pytest.raises(ConfigurationError, match=said):
        parse_policy(line)
