"""A line that permits too much is refused, whatever it is written like; ordinary ones are not."""

from __future__ import annotations

import sys

import pytest
import regex

from artoo.contracts.changes import is_visible, path_bytes, printable_path
from artoo.contracts.errors import ConfigurationError
from artoo.contracts.execution import CallStatus, ToolCall
from artoo.tools.approval.policy import parse_policy
from artoo.tools.files.unified_diff import plain
from artoo.tools.provenance.taint import Origins

WIDE = """\
edits **
overwrite *
delete /**
delete ~/**
overwrite /root/**
overwrite /home/**
overwrite /[a-z]*/**
overwrite ~/[!~]*/**
overwrite ~/[!~]*
overwrite **/*.*
overwrite **/[!x]*
overwrite {a,b,*}
delete ./**
delete **/?*
overwrite {*.txt,**}
delete /home/*/**
delete /{root,home}/**
delete ~/?*
delete ~/*
delete **/**
delete ?*
delete */**
delete **/*
delete ./*
create /**/*
edits /*/**
edits ~/*/*
edits ~/**/?*
mode {**,x}
link /home/[a-z]*/**
history **
network *.com
network *.co.uk
network *.github.io
network *.de
network *.appspot.com
recipient *@co.uk
recipient *@github.io
read ~
read /
read ~/
read ~/*
read ~/.ss?
read relative
read ~/../x
environment *
environment A*"""
NARROW = """\
edits src/**
edits *.md
delete build/*.o
create ~/notes/**
delete ~/Downloads/*.tmp
mode scripts/*.sh
link data/latest
history .git/**
edits docs/**/*.md
delete **/*.pyc
network api.example.org
network *.example.org
network *.example.co.uk
recipient *@example.org
read ~/.bashrc
read ~/.config/app
environment DATABASE_URL"""


@pytest.mark.parametrize("line", WIDE.splitlines())
def test_what_covers_a_home_or_a_root_or_a_registry_is_refused(line: str) -> None:
    """By what it covers, not by its letters."""
    with pytest.raises(ConfigurationError):
        parse_policy(line)


@pytest.mark.parametrize("line", NARROW.splitlines())
def test_ordinary_lines_are_taken(line: str) -> None:
    """A directory, an ending, a host, a domain of one owner."""
    assert parse_policy(line).kind == line.partition(" ")[0]


def test_everything_ignorable_is_written_out() -> None:
    """Every character that Unicode calls ignorable, a control, a separator or unassigned; letters stay."""
    ignorable = regex.compile(r"\p{Default_Ignorable_Code_Point}|\p{C}|\p{Zl}|\p{Zp}")
    for number in range(sys.maxunicode + 1):
        one = chr(number)
        if ignorable.fullmatch(one):
            assert not is_visible(one), hex(number)
    for one in "aé中عš\u0301🙂 ":
        assert is_visible(one)


@pytest.mark.parametrize(
    "one", "\u3164\u2800\u034f\u115f\ufe0f\u202e\u2066\u200d\u00ad\U000e0041\U0001d159\u3000\u00a0"
)
def test_nothing_invisible_reaches_a_question(one: str) -> None:
    """In a name and in a line of text it is written out, and the name can be read back."""
    name = f"a{one}b".encode()
    assert one not in printable_path(name) and path_bytes(printable_path(name)) == name
    assert one not in plain(f"a{one}b")


def observed(text: str, tool: str = "read_file") -> Origins:
    origins = Origins("Summarise notes.txt and compare it with the public figures of Berlin")
    origins.observe(
        ToolCall(
            tool=tool, identity=(tool,), target="notes.txt", input="notes.txt", status=CallStatus.OK, output=text
        )
    )
    return origins


@pytest.mark.parametrize(
    "query",
    [
        "collect.evil.sh Salary Ann 91234",
        "91234",
        "Ann Salary",
        "figures of Berlin 91234",
        "SALARY ann",
        "x9 Ann+Salary",
        '"Ann" AND "Salary"',
        "hunter2",
    ],
)
def test_words_of_a_file_do_not_leave_unasked(query: str) -> None:
    """A number or two words that stood in a file and not in the request: the act shows them and asks."""
    carried = observed("Salary of Ann: 91234 EUR, password hunter2\n").carried([query])
    assert carried and carried[0].source == "read_file notes.txt"
