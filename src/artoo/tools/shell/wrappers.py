"""Programs that run other programs: what a command really starts (`sudo env X=1 xargs rm` starts `rm`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

Word = str | None
"""An argument's value, None when only the shell could know it."""


@dataclass(frozen=True, slots=True)
class _Wrapper:
    """How to find the inner command: the options that take a value, and how many operands come first."""

    valued: frozenset[str] = frozenset()
    operands: int = 0
    assignments: bool = False
    shown: bool = False


def _options(text: str) -> frozenset[str]:
    return frozenset(text.split())


_PRIVILEGED = _options("-u -g -h -p -C -r -t -T -U -D -R --user --group --host --prompt --chdir --chroot")

WRAPPERS: Mapping[str, _Wrapper] = {
    "sudo": _Wrapper(_PRIVILEGED, assignments=True, shown=True),
    "doas": _Wrapper(_options("-u -C"), shown=True),
    "env": _Wrapper(_options("-u --unset -C --chdir -S --split-string"), assignments=True),
    "nohup": _Wrapper(),
    "setsid": _Wrapper(),
    "time": _Wrapper(_options("-f -o --format --output")),
    "command": _Wrapper(),
    "builtin": _Wrapper(),
    "exec": _Wrapper(_options("-a")),
    "nice": _Wrapper(_options("-n --adjustment")),
    "ionice": _Wrapper(_options("-c -n -p -P -u --class --classdata")),
    "stdbuf": _Wrapper(_options("-i -o -e --input --output --error")),
    "timeout": _Wrapper(_options("-s -k --signal --kill-after"), operands=1),
    "busybox": _Wrapper(),
    "toybox": _Wrapper(),
    "xargs": _Wrapper(
        _options("-I -L -n -P -s -d -E -a --replace --max-lines --max-args --max-procs --delimiter --arg-file")
    ),
}
"""`shown` ones are programs of their own too: a password prompt of sudo is sudo's failure."""

SHELLS = frozenset({"bash", "sh", "dash", "zsh", "ksh", "ash"})

_QUERIES = frozenset({"-v", "-V"})
_FIND_EXECUTES = frozenset({"-exec", "-execdir", "-ok", "-okdir"})

MAX_DEPTH = 8
"""Wrappers within wrappers that are followed; beyond, the outer program stands for the rest."""


def started_programs(
    name: Word, arguments: Sequence[Word], script: Callable[[str], Iterator[Word]], depth: int = 0
) -> Iterator[Word]:
    """The programs that one simple command starts, by base name; None for one whose name cannot be known.

    `script` gives the programs of a shell script in a string (`bash -c`, `eval`).
    """
    if name is None:
        yield None
        return
    base = name.rsplit("/", 1)[-1]
    if depth >= MAX_DEPTH:
        yield base
        return
    inner = _inner_script(base, arguments)
    if inner is not None:
        yield from script(inner)
        return
    wrapper = WRAPPERS.get(base)
    wrapped = _wrapped(wrapper, base, arguments) if wrapper is not None else ()
    if wrapper is None or wrapper.shown or not wrapped:
        yield base
    if wrapped:
        yield from started_programs(wrapped[0], wrapped[1:], script, depth + 1)
    if base == "find":
        for position, word in enumerate(arguments[:-1]):
            if word in _FIND_EXECUTES:
                yield from started_programs(arguments[position + 1], arguments[position + 2 :], script, depth + 1)


def _wrapped(wrapper: _Wrapper, base: str, arguments: Sequence[Word]) -> Sequence[Word]:
    """The arguments from the inner command on; empty when there is none."""
    position = 0
    while position < len(arguments):
        word = arguments[position]
        if word is None:
            break
        if base == "command" and word in _QUERIES:
            return ()
        if word == "--":
            position += 1
            break
        if word.startswith("-") and len(word) > 1:
            position += 2 if word in wrapper.valued else 1
        elif wrapper.assignments and "=" in word:
            position += 1
        else:
            break
    return arguments[position + wrapper.operands :]


def _inner_script(base: str, arguments: Sequence[Word]) -> str | None:
    """The script that a shell, `eval` or `env -S` is given as a string."""
    if base == "eval":
        known = [word for word in arguments if word is not None]
        return " ".join(known) if known and len(known) == len(arguments) else None
    if base == "env" and len(arguments) >= 2 and arguments[0] in ("-S", "--split-string"):
        return arguments[1]
    if base not in SHELLS and base != "su":
        return None
    for position, word in enumerate(arguments[:-1]):
        if word is not None and word.startswith("-") and not word.startswith("--") and word.endswith("c"):
            return arguments[position + 1]
    return None
