"""What is understood of shell commands."""

from __future__ import annotations

import subprocess

import pytest

from artoo.tools.shell.parser import parse_command

PROGRAMS = [
    ("ls -la", ("shell:ls",)),
    ("find . -name '*.py' | wc -l", ("shell:find", "shell:wc")),
    ("(cd data && cat x) || { sort y; }", ("shell:cat", "shell:sort")),
    ("sudo -u bob find /", ("shell:sudo", "shell:find")),
    ("env A=1 B=2 nohup nice -n 5 make", ("shell:make",)),
    ("timeout -k 5 10 rsync a b", ("shell:rsync",)),
    ("find . -print0 | xargs -0 -n 1 rm -f", ("shell:find", "shell:rm")),
    ("time ls", ("shell:ls",)),
    ("command -v python3", ("shell:command",)),
    ("command rm x", ("shell:rm",)),
    ("bash -c 'grep a b | bash -lc \"wc -l\"'", ("shell:grep", "shell:wc")),
    ("eval 'rm x'", ("shell:rm",)),
    ('sh -c "echo \\`curl x\\`"', ("shell:echo", "shell:curl")),
    ("echo $(cat `ls`)", ("shell:echo", "shell:cat", "shell:ls")),
    ('echo "$(date +%s)"', ("shell:echo", "shell:date")),
    ("diff <(sort a) <(sort b)", ("shell:diff", "shell:sort")),
    ("find . -name x -exec rm -f {} \\;", ("shell:find", "shell:rm")),
    ("\\rm x", ("shell:rm",)),
    ("'/bin/rm' x", ("shell:rm",)),
    ("busybox rm x", ("shell:rm",)),
    ('for f in *.txt; do wc -l < "$f"; done', ("shell:wc",)),
    ("f() { rm x; }; f", ("shell:rm", "shell:f")),
    ("if [ -f x ]; then cat x; fi", ("shell:test", "shell:cat")),
    ("export X=$(hostname)", ("shell:hostname",)),
    ("cat <<EOF | tr a b\n$(id)\nEOF", ("shell:cat", "shell:tr", "shell:id")),
    ("cd /tmp", ("shell:cd",)),
]


@pytest.mark.parametrize(("command", "identities"), PROGRAMS)
def test_identities_are_the_programs_that_a_command_starts(command: str, identities: tuple[str, ...]) -> None:
    """Programs are found through pipelines, subshells, wrappers, substitutions and scripts in strings."""
    assert set(parse_command(command).identities) == set(identities)


@pytest.mark.parametrize("command", ["echo a; ; b", "((", "if then", "cat <<EOF", "'", ")", "\0ls", "x" * 200_000])
def test_a_command_that_does_not_parse_is_still_a_shell_command(command: str) -> None:
    """What cannot be read has the identity `shell`, and what was understood of it besides."""
    parsed = parse_command(command)
    if not parsed.parsed:
        assert parsed.identities[0] == "shell"
    assert parsed.identities


def test_nesting_without_end_is_bounded() -> None:
    """Ten thousand nested subshells neither recurse nor hang."""
    assert parse_command("$(" * 10_000 + "ls" + ")" * 10_000).identities
    script = "ls"
    for _ in range(30):
        script = "bash -c " + "'" + script.replace("'", "'\\''")[:20_000] + "'"
    assert parse_command(script).identities


def test_words_are_unquoted_as_the_shell_would() -> None:
    """Quotes, escapes and known variables are resolved; a word that needs the shell has no value."""
    words = parse_command('cat \'a b\' "c $HOME/d" e\\ f ~/g "$UNKNOWN" j"k"l -n', {"HOME": "/h"}).only
    assert words is not None
    assert words.arguments == ("a b", "c /h/d", "e f", "/h/g", None, "jkl", "-n")
    written = """printf '%s|' "\\$x" "\\`" "a\\\nb" '\\$x' "\\a\\\\\\$" \\` a"b'\\$c"'d\\`e' \\'"\\$\""""
    words, said = parse_command(written).only, subprocess.check_output(("bash", "-c", written), text=True)
    assert words is not None and [*words.arguments[1:], ""] == said.split("|")


@pytest.mark.parametrize(
    ("written", "normal"),
    [
        ("  ls   -la  ;", "ls -la"),
        ("ls \\\n  -l | \t wc", "ls -l | wc"),
        ("echo 'a   b'   \"c   d\"", "echo 'a   b' \"c   d\""),
        ("a\n\n\n b", "a\nb"),
        ("cat <<E\nx   y\nE\n", "cat <<E\nx   y\nE"),
        ("echo   a  ;;  b", "echo a ;; b"),
    ],
)
def test_the_normal_form_reduces_blanks_outside_quotes(written: str, normal: str) -> None:
    """Equal commands have equal targets; what is quoted keeps its blanks."""
    assert parse_command(written).normal == normal


@pytest.mark.parametrize("character", ["\U0001f600", "\U0010ffff", "\U00020000"])
def test_a_character_beyond_the_basic_plane_ends_no_process(character: str) -> None:
    """The grammar's scanner crashes on such a character, so the command is taken as one that cannot be read."""
    command = parse_command(f"echo {character} > {character}.txt; $({character}")
    assert not command.parsed
