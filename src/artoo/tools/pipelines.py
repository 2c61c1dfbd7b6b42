"""What `pipefail` calls a failure and is none, taken back where it comes up: inside the script.

A script goes on by the exit codes of its pipelines (`&&`, `if`, `set -e`), so nobody can take one back afterwards.
"""

from __future__ import annotations

from artoo.tools.shell_syntax import Producer, parse_command

SEARCHES = frozenset({"grep", "egrep", "fgrep", "zgrep", "rg", "ag"})
"""Programs whose exit code 1 means "not found"."""

_LONGEST = 120_000
"""Bytes of a script: Linux starts no program with an argument of 128 KiB."""

_ENDED = "$? == 141"
_NOT_FOUND = "$? == 1"


def with_answers(script: str) -> str:
    """`script`, in which a part of a pipeline succeeds that was ended because its reader had enough (`... | head`,
    SIGPIPE). Where the script is one pipeline, so does a search that found nothing and whose emptiness another
    program reads: a longer one may go on with it as if it were something.

    Each other exit code stays what it is, and so does that of a pipeline's last program.
    """
    if "|" not in script:
        return script
    text, parsed = script.encode("utf-8", "surrogateescape"), parse_command(script)
    alone = parsed.final is not None
    marks = [mark for producer in parsed.producers for mark in _marks(producer, alone=alone)]
    done, end = list[bytes](), 0
    for at, mark in sorted(marks, key=lambda each: each[0]):
        done += (text[end:at], mark)
        end = at
    told = b"".join((*done, text[end:]))
    return told.decode("utf-8", "surrogateescape") if len(told) <= _LONGEST else script


def _marks(producer: Producer, *, alone: bool) -> tuple[tuple[int, bytes], tuple[int, bytes]]:
    """A trap holds under `set -e` too. The inner subshell is what the signal may end, so that the outer one tells.

    The first blank keeps it from reading as arithmetic: `$((`.
    """
    searches = alone and not SEARCHES.isdisjoint(producer.programs)
    answers = f"{_ENDED} || {_NOT_FOUND}" if searches else _ENDED
    opening = f" ( trap 'exit $(({answers} ? 0 : $?))' EXIT; ( "
    return (producer.start, opening.encode()), (producer.end, b" ) )")
