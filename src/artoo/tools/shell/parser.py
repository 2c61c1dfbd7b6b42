"""What a shell command consists of, read with a real parser (tree-sitter's bash grammar), never run.

    text ──► parse_command ──► ShellCommand: identities, normal form, programs, redirections, files named

A command that does not parse is still a command: it keeps the identity `shell` besides whatever was understood.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from artoo.tools.files.paths import encodable
from artoo.tools.shell.words import Variables, literal, text_of
from artoo.tools.shell.wrappers import MAX_DEPTH, Word, started_programs

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

MAX_COMMAND = 100_000
"""Characters of a command that are parsed; a longer one counts as not understood."""

SHELL = "shell"

_ATOMS = frozenset({"string", "raw_string", "ansi_c_string", "heredoc_redirect", "comment", "word"})

_NEUTRAL = frozenset(
    ": true cd pushd popd set shopt export declare local readonly typeset unset umask wait exit return".split()  # noqa: SIM905
)
"""Builtins that only prepare the shell: a command is called by what it runs besides them."""

_SEQUENCES = frozenset({"program", "compound_statement", "subshell"})
_LOOPS = frozenset({"for_statement", "c_style_for_statement", "while_statement", "if_statement"})
"""Nodes whose parts run one after the other, whatever became of the one before."""

_READING = frozenset({"<"})
_WRITING = frozenset({">", ">>", ">|", "&>", "&>>", "<>"})


@dataclass(frozen=True, slots=True)
class SimpleCommand:
    """One program with its arguments as written; None where a value cannot be known without running."""

    name: Word
    arguments: tuple[Word, ...]


@dataclass(frozen=True, slots=True)
class Redirection:
    """A file that the shell itself opens. `path` None: not known. `descriptor` None: the default one."""

    path: Word
    writes: bool
    descriptor: str | None = None


@dataclass(frozen=True, slots=True)
class ShellCommand:
    """What was understood of a command. `programs` are base names in order of appearance, without repeats.

    `only` is set when the whole command is one simple command (redirections aside), `final` when it is one
    pipeline: the last program in it, whose output is the command's. `last` is set when several statements run one
    after the other whatever becomes of them, and the last of them is a simple command: the exit code is its alone.
    `masks`: an error of one of its programs need not show in its exit code.
    """

    parsed: bool
    normal: str
    programs: tuple[str, ...] = ()
    unknown_program: bool = False
    commands: tuple[SimpleCommand, ...] = ()
    redirections: tuple[Redirection, ...] = ()
    only: SimpleCommand | None = None
    final: SimpleCommand | None = None
    last: SimpleCommand | None = None
    masks: bool = False

    @property
    def identities(self) -> tuple[str, ...]:
        """`shell:PROGRAM` for each program; `shell` too when some of the command is not understood."""
        named = tuple(f"{SHELL}:{program}" for program in self.programs)
        return named if named and self.parsed and not self.unknown_program else (SHELL, *named)


class _Parsers(threading.local):
    """One parser for each thread: a parser that two threads use at once crashes the process."""

    parser: Parser | None = None


_parsers = _Parsers()


def _parser() -> Parser:
    """Return this thread's parser. Loading the grammar takes some milliseconds, so it is made when first needed."""
    if _parsers.parser is None:
        import tree_sitter_bash
        from tree_sitter import Language, Parser

        _parsers.parser = Parser(Language(tree_sitter_bash.language()))
    return _parsers.parser


def parse_command(text: str, variables: Variables | None = None) -> ShellCommand:
    """Reads a command. `variables` are shell variables whose value is known, such as HOME. Never raises."""
    known: Mapping[str, str] = variables or {}
    if not _readable(text):
        return ShellCommand(parsed=False, normal=_squeezed(text))
    root = _root(text)
    broken = root.has_error
    names = list(dict.fromkeys(_programs(root, known, 0)))
    programs = tuple(name for name in names if name is not None)
    useful = tuple(name for name in programs if name not in _NEUTRAL)
    return ShellCommand(
        parsed=not broken,
        normal=_squeezed(text) if broken else _normal(root),
        programs=useful or programs,
        unknown_program=None in names,
        commands=tuple(_simple(node, known) for node in _nodes(root, "command")),
        redirections=tuple(_redirections(root, known)),
        only=None if broken else _only(root, known),
        final=None if broken else _final(root, known),
        last=None if broken else _last(root, known),
        masks=_masks(root, known),
    )


def _readable(text: str) -> bool:
    """True if the grammar can take the text.

    Its scanner asks C's `isalpha` about each character, which crashes the process beyond the basic plane (emoji).
    """
    return len(text) <= MAX_COMMAND and "\0" not in text and encodable(text) and max(text, default="") <= "\uffff"


def _root(text: str) -> Node:
    return _parser().parse(text.encode("utf-8", "surrogateescape")).root_node


def _walk(root: Node) -> Iterator[Node]:
    """All nodes in source order, without recursion: commands nest as deep as their author likes."""
    stack = [root]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(node.children))


def _nodes(root: Node, *kinds: str) -> Iterator[Node]:
    return (node for node in _walk(root) if node.type in kinds)


def _simple(node: Node, variables: Variables) -> SimpleCommand:
    name = node.child_by_field_name("name")
    return SimpleCommand(
        name=None if name is None else literal(name, variables),
        arguments=tuple(literal(argument, variables) for argument in node.children_by_field_name("argument")),
    )


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
                yield text_of(node.children[0])


def _redirections(root: Node, variables: Variables) -> Iterator[Redirection]:
    for node in _nodes(root, "file_redirect"):
        operators = {child.type for child in node.children}
        destination = node.child_by_field_name("destination")
        descriptor = node.child_by_field_name("descriptor")
        if destination is None or not operators & (_READING | _WRITING):
            continue
        yield Redirection(
            path=literal(destination, variables),
            writes=bool(operators & _WRITING),
            descriptor=None if descriptor is None else text_of(descriptor),
        )


def _only(root: Node, variables: Variables) -> SimpleCommand | None:
    """The one simple command that the whole text is, if it is; assignments before it make it something else."""
    node = _statement(root)
    if node is None or node.type != "command":
        return None
    if any(child.type == "variable_assignment" for child in node.children):
        return None
    inner = [child for child in _nodes(node, "command", "process_substitution") if child.id != node.id]
    return None if inner else _simple(node, variables)


def _final(root: Node, variables: Variables) -> SimpleCommand | None:
    """The last program of the one pipeline that the whole text is; a simple command is a pipeline of one."""
    node = _statement(root)
    if node is not None and node.type == "pipeline":
        node = node.named_children[-1]
    return None if node is None or node.type != "command" else _simple(node, variables)


def _last(root: Node, variables: Variables) -> SimpleCommand | None:
    """The last of several statements, if it is a simple command that runs whatever became of those before it."""
    statements = [child for child in root.children if child.is_named and child.type != "comment"]
    if len(statements) < 2 or statements[-1].type != "command" or _ends_early(root, variables):
        return None
    return _simple(statements[-1], variables)


def _masks(root: Node, variables: Variables) -> bool:
    """True if bash goes on after an error in it: a sequence without `set -e`, `||`, a pipe without `pipefail`."""
    ends_early, settings = _ends_early(root, variables), _settings(root, variables)
    for node in _walk(root):
        kinds = [child.type for child in node.children]
        if "||" in kinds or (node.type == "pipeline" and "pipefail" not in settings):
            return True
        parts = sum(child.is_named and child.type != "comment" for child in node.children)
        if not ends_early and (node.type in _LOOPS or (node.type in _SEQUENCES and parts > 1)):
            return True
    return False


def _ends_early(root: Node, variables: Variables) -> bool:
    """True if bash ends at the first error in it (`set -e`)."""
    settings = _settings(root, variables)
    return any(word.startswith("-") and "e" in word for word in settings) or "errexit" in settings


def _settings(root: Node, variables: Variables) -> set[str]:
    """The words that it gives to `set`."""
    setting = (_simple(one, variables) for one in _nodes(root, "command") if _sets(one))
    return {word or "" for one in setting for word in one.arguments}


def _sets(node: Node) -> bool:
    name = node.child_by_field_name("name")
    return name is not None and text_of(name) == "set"


def _statement(root: Node) -> Node | None:
    """The one statement that the text consists of, without its redirections."""
    statements = [child for child in root.children if child.is_named and child.type != "comment"]
    if len(statements) != 1:
        return None
    node = statements[0]
    if node.type == "redirected_statement":
        if any(_nodes(node, "heredoc_redirect", "herestring_redirect")):
            return None
        return node.child_by_field_name("body")
    return node


def _normal(root: Node) -> str:
    """The command with blanks outside quotes reduced to one, and no trailing separator."""
    parts: list[str] = []
    end = root.start_byte
    source = root.text or b""
    offset = root.start_byte
    for leaf in _leaves(root):
        text = text_of(leaf)
        if not text.strip():
            continue
        gap = source[end - offset : leaf.start_byte - offset].decode("utf-8", "surrogateescape")
        parts += [_gap(gap), text]
        end = leaf.end_byte
    return "".join(parts).strip().rstrip(";").rstrip()


def _leaves(root: Node) -> Iterator[Node]:
    """The tokens in order; quoted text, words and here-documents are tokens as a whole."""
    stack = [root]
    while stack:
        node = stack.pop()
        if node.type in _ATOMS or not node.children:
            yield node
        else:
            stack.extend(reversed(node.children))


def _gap(text: str) -> str:
    rest = text.replace("\\\n", " ")
    if "\n" in rest:
        return "\n"
    return " " if rest else ""


def _squeezed(text: str) -> str:
    """The normal form of what cannot be parsed: lines without surrounding or repeated blanks."""
    lines = (" ".join(line.split()) for line in text.splitlines())
    return "\n".join(line for line in lines if line)
