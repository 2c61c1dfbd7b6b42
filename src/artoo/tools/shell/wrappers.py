"""Find programs started by wrappers such as sudo, env, xargs, timeout and `sh -c`.

For example, `sudo env X=1 xargs rm` starts `rm`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

Word = str | None
"""The value of an argument. It is None if only the shell can determine it."""

_VALUED: Mapping[str, str] = {
    "sudo": "-u -g -h -p -C -r -t -T -U -D -R --user --group --host --prompt --chdir --chroot",
    "doas": "-u -C",
    "env": "-u --unset -C --chdir -S --split-string",
    "nohup": "",
    "setsid": "",
    "time": "-f -o --format --output",
    "command": "",
    "builtin": "",
    "exec": "-a",
    "nice": "-n --adjustment",
    "ionice": "-c -n -p -P -u --class --classdata",
    "stdbuf": "-i -o -e --input --output --error",
    "timeout": "-s -k --signal --kill-after",
    "busybox": "",
    "toybox": "",
    "xargs": "-I -L -n -P -s -d -E -a --replace --max-lines --max-args --max-procs --delimiter --arg-file",
}
"""Wrapper programs, each with those of its options whose value is a separate argument."""
_OPERANDS = {"timeout": 1}
"""Number of arguments that a wrapper takes before the command that it runs."""
_ASSIGNING = frozenset({"sudo", "env"})
_SHOWN = frozenset({"sudo", "doas"})
"""Wrappers that also count as programs themselves. For example, a password prompt is a failure of sudo, not of the
command."""

SHELLS = frozenset({"bash", "sh", "dash", "zsh", "ksh", "ash"})

_QUERIES = frozenset({"-v", "-V"})
_FIND_EXECUTES = frozenset({"-exec", "-execdir", "-ok", "-okdir"})

MAX_DEPTH = 8
"""Maximum number of nested wrappers that are followed. At this depth, the wrapper itself counts as the program."""


def started_programs(
    name: Word, arguments: Sequence[Word], script: Callable[[str], Iterator[Word]], depth: int = 0
) -> Iterator[Word]:
    """Yield the base names of the programs that one simple command starts. None stands for a name that is not
    known.

    `script` yields the programs of a shell script that is given as a string (`bash -c`, `eval`).
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
    wrapped = _wrapped(base, arguments) if base in _VALUED else ()
    if not wrapped or base in _SHOWN:
        yield base
    if wrapped:
        yield from started_programs(wrapped[0], wrapped[1:], script, depth + 1)
    if base == "find":
        for position, word in enumerate(arguments[:-1]):
            if word in _FIND_EXECUTES:
                yield from started_programs(arguments[position + 1], arguments[position + 2 :], script, depth + 1)


def _wrapped(base: str, arguments: Sequence[Word]) -> Sequence[Word]:
    """Return the inner command with its arguments. Return nothing if there is none."""
    position, valued = 0, _VALUED[base].split()
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
            position += 2 if word in valued else 1
        elif base in _ASSIGNING and "=" in word:
            position += 1
        else:
            break
    return arguments[position + _OPERANDS.get(base, 0) :]


def _inner_script(base: str, arguments: Sequence[Word]) -> str | None:
    """Return the script that a shell, `eval` or `env -S` receives as a string."""
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
