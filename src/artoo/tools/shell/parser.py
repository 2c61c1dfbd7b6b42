"""Parse a bash command into programs, arguments and its normal form, with the longest command.

It uses tree-sitter's grammar for bash, and does not run the command.

    text ──► parse_command ──► ShellCommand: identities, normal form, the only command, whether errors are masked

If a command cannot be parsed completely, the identity `shell` is added to those of the programs that were found.
"""

from __future__ import annotations

import re
import shlex
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from artoo.tools.files.paths import encodable
from artoo.tools.shell.wrappers import MAX_DEPTH, Word, started_programs

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

Variables = Mapping[str, str]
"""Shell variables whose values are known before the command runs, such as HOME."""

MAX_COMMAND = 100_000
"""Maximum length of a command that is parsed. A longer command counts as not understood."""

SHELL = "shell"

_ATOMS = frozenset({"string", "raw_string", "ansi_c_string", "heredoc_redirect", "comment", "word"})
_EXPANSIONS = frozenset({"simple_expansion", "expansion"})
_FOUND_BY_RUNNING = frozenset(
    {"command_substitution", "process_substitution", "arithmetic_expansion", "ansi_c_string"}
)
_NEUTRAL = frozenset(
    ": true cd pushd popd set shopt export declare local readonly typeset unset umask wait exit return".split()  # noqa: SIM905
)
"""Builtins that only prepare the shell. A command is identified by the other programs that it runs."""

_SEQUENCES = frozenset({"program", "compound_statement", "subshell"})
_LOOPS = frozenset({"for_statement", "c_style_for_statement", "while_statement", "if_statement"})
_PIECES = re.compile(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"|\\.", re.DOTALL)
_HERE = "\ue000"
"""Placeholder for the value of a variable while quotes are removed, so that the value itself is neither split nor
unquoted."""


@dataclass(frozen=True, slots=True)
class SimpleCommand:
    """One program with its arguments. None stands for a value that is known only when the command runs."""

    name: Word
    arguments: tuple[Word, ...]

    @property
    def program(self) -> str | None:
        """Return the base name of the program, without directories."""
        return None if self.name is None else self.name.rsplit("/", 1)[-1]


@dataclass(frozen=True, slots=True)
class ShellCommand:
    """The parsed parts of a command. `programs` are the base names in order of appearance, without repetitions.

    `only` is set if the whole command is one simple command without redirections. `ending` is the base name of the
    last program. `masks`: true if the exit code may not show that one of its programs failed.
    """

    parsed: bool
    normal: str
    programs: tuple[str, ...] = ()
    unknown_program: bool = False
    only: SimpleCommand | None = None
    ending: str | None = None
    masks: bool = False

    @property
    def identities(self) -> tuple[str, ...]:
        """Return `shell:PROGRAM` for each program. If a part of the command is not understood, `shell` precedes
        them."""
        named = tuple(f"{SHELL}:{program}" for program in self.programs)
        return named if named and self.parsed and not self.unknown_program else (SHELL, *named)


class _Parsers(threading.local):
    """One parser for each thread, because a parser that two threads use at once crashes the process."""

    parser: Parser | None = None


_parsers = _Parsers()


def _parser() -> Parser:
    """Return this thread's parser."""
    # Loading the grammar takes some milliseconds, so a parser is only created when it is first used.
    if _parsers.parser is None:
        import tree_sitter_bash
        from tree_sitter import Language, Parser

        _parsers.parser = Parser(Language(tree_sitter_bash.language()))
    return _parsers.parser


def parse_command(text: str, variables: Variables | None = None) -> ShellCommand:
    """Parse a command. Never raises."""
    known: Variables = variables or {}
    if not _readable(text):
        return ShellCommand(parsed=False, normal=_squeezed(text))
    root = _root(text)
    names = list(dict.fromkeys(_programs(root, known, 0)))
    programs = tuple(name for name in names if name is not None)
    commands = list(_nodes(root, "command"))
    return ShellCommand(
        parsed=not root.has_error,
        normal=_squeezed(text) if root.has_error else _normal(root),
        programs=tuple(name for name in programs if name not in _NEUTRAL) or programs,
        unknown_program=None in names,
        only=None if root.has_error else _only(root, known),
        ending=_simple(commands[-1], known).program if commands else None,
        masks=_masks(root, known),
    )


def _readable(text: str) -> bool:
    """Check whether the grammar can parse the text."""
    # Its scanner calls C's `isalpha` on each character. That crashes the process for emoji and other characters
    # above U+FFFF.
    return len(text) <= MAX_COMMAND and "\0" not in text and encodable(text) and max(text, default="") <= "\uffff"


def _root(text: str) -> Node:
    return _parser().parse(text.encode("utf-8", "surrogateescape")).root_node


def _nodes(root: Node, *kinds: str) -> Iterator[Node]:
    """Yield the nodes of these kinds in source order. If no kind is given, yield all nodes."""
    # The function is not recursive, because commands may be nested to any depth.
    stack = [root]
    while stack:
        node = stack.pop()
        if not kinds or node.type in kinds:
            yield node
        stack.extend(reversed(node.children))


def _text_of(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "surrogateescape")


def _simple(node: Node, variables: Variables) -> SimpleCommand:
    name = node.child_by_field_name("name")
    return SimpleCommand(
        name=None if name is None else _literal(name, variables),
        arguments=tuple(_literal(argument, variables) for argument in node.children_by_field_name("argument")),
    )


def _literal(node: Node, variables: Variables) -> Word:
    """Return the value of a word. Return None if it is known only when the command runs. Globs are not expanded."""
    source, start, position = node.text or b"", node.start_byte, 0
    written, values = "", list[str]()
    for inner in _nodes(node, *_EXPANSIONS, *_FOUND_BY_RUNNING):
        value = variables.get(_text_of(inner).strip("${}")) if inner.type in _EXPANSIONS else None
        if value is None:
            return None
        written += source[position : inner.start_byte - start].decode("utf-8", "surrogateescape") + _HERE
        position = inner.end_byte - start
        values.append(value)
    written += source[position:].decode("utf-8", "surrogateescape")
    home = variables.get("HOME")
    if home is not None and (written == "~" or written.startswith("~/")):
        written, values = f"{_HERE}{written[1:]}", [home, *values]
    try:
        parts = " ".join(shlex.split(_PIECES.sub(_for_shlex, written))).split(_HERE)
    except ValueError:
        return None
    if len(parts) != len(values) + 1:
        return None
    return "".join(part + value for part, value in zip(parts, (*values, ""), strict=True))


def _for_shlex(found: re.Match[str]) -> str:
    """Remove escapes that only bash has, and `shlex` does not: of line ends and, within double quotes, of `$` and
    backticks."""
    if found[0].startswith('"'):
        return re.sub(r"\\([$`\n])|\\.", lambda one: (one[1] or one[0]).strip("\n"), found[0], flags=re.DOTALL)
    return found[0].removeprefix("\\\n")


def _programs(root: Node, variables: Variables, depth: int) -> Iterator[Word]:
    def script(text: str) -> Iterator[Word]:
        if depth >= MAX_DEPTH or not _readable(text):
            yield None
            return
        inner = _root(text)
        if inner.has_error:
            yield None
        yield from _programs(inner, variables, depth + 1)

    for node in _nodes(root, "command", "test_command", "declaration_command"):
        match node.type:
            case "command":
                one = _simple(node, variables)
                yield from started_programs(one.name, one.arguments, script)
            case "test_command":
                yield "test"
            case _:
                yield _text_of(node.children[0])


def _statements(node: Node) -> list[Node]:
    return [child for child in node.children if child.is_named and child.type != "comment"]


def _only(root: Node, variables: Variables) -> SimpleCommand | None:
    """Return the simple command if it is the whole text and no assignments precede it. Otherwise return None."""
    statements = _statements(root)
    if len(statements) != 1 or statements[0].type != "command":
        return None
    node = statements[0]
    if any(child.type in ("variable_assignment", "herestring_redirect") for child in node.children):
        return None
    inner = [child for child in _nodes(node, "command", "process_substitution") if child.id != node.id]
    return None if inner else _simple(node, variables)


def _masks(root: Node, variables: Variables) -> bool:
    """Check whether bash continues after an error. It does in a sequence without `set -e`, after `||`, and in a
    pipe without `pipefail`."""
    settings = _settings(root, variables)
    ends_early = any(word.startswith("-") and "e" in word for word in settings) or "errexit" in settings
    for node in _nodes(root):
        if any(child.type == "||" for child in node.children):
            return True
        if node.type == "pipeline" and "pipefail" not in settings:
            return True
        sequence = node.type in _SEQUENCES and len(_statements(node)) > 1
        if not ends_early and (sequence or node.type in _LOOPS):
            return True
    return False


def _settings(root: Node, variables: Variables) -> set[str]:
    """Return the arguments of all `set` commands."""
    commands = (_simple(one, variables) for one in _nodes(root, "command"))
    return {word or "" for one in commands if one.name == "set" for word in one.arguments}


def _normal(root: Node) -> str:
    """Return the command in its normal form: each run of blanks outside quotes becomes one blank, and a trailing
    separator is removed."""
    parts: list[str] = []
    source, offset = root.text or b"", root.start_byte
    end = offset
    for leaf in _leaves(root):
        text = _text_of(leaf)
        if not text.strip():
            continue
        gap = source[end - offset : leaf.start_byte - offset].decode("utf-8", "surrogateescape")
        rest = gap.replace("\\\n", " ")
        parts += ["\n" if "\n" in rest else rest[:1] and " ", text]
        end = leaf.end_byte
    return "".join(parts).strip().rstrip(";").rstrip()


def _leaves(root: Node) -> Iterator[Node]:
    """Yield the tokens of the command in order. Quoted texts, words and here-documents are single tokens."""
    stack = [root]
    while stack:
        node = stack.pop()
        if node.type in _ATOMS or not node.children:
            yield node
        else:
            stack.extend(reversed(node.children))


def _squeezed(text: str) -> str:
    """Return the normal form of a text that cannot be parsed, whose lines have no surrounding or repeated
    blanks."""
    lines = (" ".join(line.split()) for line in text.splitlines())
    return "\n".join(line for line in lines if line)
