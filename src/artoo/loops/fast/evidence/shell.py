"""What a shell command does with the outcome of each of its programs, read from its syntax tree.

The exit code of `a; echo ok`, `a || true` or `a | tail` says nothing about `a`: a step knows whether its own
failure would have shown in the command's exit code, and where its words came from.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node

COMMAND_CHARACTERS = 20_000
"""Longest command that is parsed; the rest is not looked at."""
_DEEPEST = 40
_NO_OPERATION = frozenset({"true", ":", "echo", "printf", "exit", "return", "continue", "break"})
_DYNAMIC = frozenset(
    {"simple_expansion", "expansion", "command_substitution", "process_substitution", "arithmetic_expansion"}
)


@dataclass(frozen=True, slots=True)
class Word:
    """One argument, unquoted. `pieces` are its literal parts; `dynamic` says that something was filled in."""

    text: str
    pieces: tuple[str, ...] = ()
    dynamic: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """One program of a command.

    `exposed`: its failure shows in the exit code of the whole. `hidden`: its failure was replaced on purpose
    (`|| true`). `certain`: it ran if the command ended well. Steps of one `pipe` feed each other, by `stage`.
    """

    program: str
    words: tuple[Word, ...] = ()
    text: str = ""
    exposed: bool = True
    hidden: bool = False
    certain: bool = True
    background: bool = False
    fallback: bool = False
    guarded: bool = False
    errors_discarded: bool = False
    output_discarded: bool = False
    writes: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    heredoc: str = ""
    pipe: int = 0
    stage: int = 0
    last_stage: bool = True
    substituted: bool = False

    @property
    def args(self) -> tuple[str, ...]:
        """The arguments as text."""
        return tuple(word.text for word in self.words)

    @property
    def operands(self) -> tuple[str, ...]:
        """The arguments that are no options."""
        return tuple(word.text for word in self.words if not word.text.startswith("-"))


@dataclass(frozen=True, slots=True)
class _Context:
    exposed: bool = True
    hidden: bool = False
    certain: bool = True
    background: bool = False
    fallback: bool = False
    guarded: bool = False
    errors_discarded: bool = False
    output_discarded: bool = False
    writes: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    heredoc: str = ""
    pipe: int = 0
    stage: int = 0
    last_stage: bool = True
    substituted: bool = False
    depth: int = 0


@dataclass(slots=True)
class _Walk:
    """Options that a command sets for what follows it, and the next free pipe number."""

    errexit: bool = False
    pipefail: bool = False
    pipes: int = 0
    steps: list[Step] = field(default_factory=list["Step"])


@lru_cache(maxsize=256)
def steps_of(command: str) -> tuple[Step, ...]:
    """The programs of a command as they are written; wrappers such as sudo are looked through."""
    import tree_sitter_bash
    from tree_sitter import Language, Parser

    tree = Parser(Language(tree_sitter_bash.language())).parse(command[:COMMAND_CHARACTERS].encode())
    walk = _Walk()
    _visit(tree.root_node, _Context(), walk)
    return tuple(step for each in walk.steps for step in _unwrapped(each))


def _text(node: Node) -> str:
    return (node.text or b"").decode(errors="replace")


def _visit(node: Node, context: _Context, walk: _Walk) -> None:
    if context.depth > _DEEPEST:
        return
    context = replace(context, depth=context.depth + 1)
    match node.type:
        case "command":
            _command(node, context, walk)
        case "test_command":
            walk.steps.append(_step("test", (), node, context))
        case "pipeline":
            _pipeline(list(node.named_children), context, walk)
        case "list":
            _list(node, context, walk)
        case "redirected_statement":
            _redirected(node, context, walk)
        case "negated_command":
            _sequence(node, replace(context, exposed=False), walk)
        case "if_statement" | "while_statement" | "case_statement":
            _conditional(node, context, walk)
        case "function_definition":
            _sequence(node, replace(context, exposed=False, certain=False), walk)
        case "heredoc_body" | "comment":
            return
        case _:
            _sequence(node, context, walk)


def _sequence(node: Node, context: _Context, walk: _Walk) -> None:
    """Statements one after the other: only the last one's failure shows, unless `set -e` came before."""
    statements = [child for child in node.children if child.is_named and child.type != "comment"]
    for index, child in enumerate(statements):
        last = index == len(statements) - 1
        following = child.next_sibling
        background = context.background or (following is not None and following.type == "&")
        exposed = context.exposed and (last or walk.errexit) and not background
        _visit(child, replace(context, exposed=exposed, background=background), walk)


def _conditional(node: Node, context: _Context, walk: _Walk) -> None:
    conditions = {child.id for child in node.children_by_field_name("condition")}
    for child in node.named_children:
        inner = (
            replace(context, exposed=False)
            if child.id in conditions
            else replace(context, certain=False, guarded=True)
        )
        _visit(child, inner, walk)


def _list(node: Node, context: _Context, walk: _Walk) -> None:
    left, right = node.named_children[0], node.named_children[-1]
    if any(child.type == "||" for child in node.children):
        hides = _is_no_operation(right)
        _visit(left, replace(context, exposed=False, hidden=hides or context.hidden), walk)
        _visit(right, replace(context, certain=False, fallback=True, guarded=True), walk)
    else:
        _visit(left, context, walk)
        _visit(right, replace(context, guarded=True), walk)


def _is_no_operation(node: Node) -> bool:
    name = node.child_by_field_name("name")
    if node.type == "redirected_statement" and node.named_children:
        return _is_no_operation(node.named_children[0])
    return node.type == "command" and name is not None and _text(name) in _NO_OPERATION


def _pipeline(stages: list[Node], context: _Context, walk: _Walk) -> None:
    nested = context.pipe != 0
    if not nested:
        walk.pipes += 1
    pipe = context.pipe if nested else walk.pipes
    for index, stage in enumerate(stages):
        last = index == len(stages) - 1
        inner = replace(
            context,
            pipe=pipe,
            stage=context.stage if nested else index,
            last_stage=context.last_stage and last,
            exposed=context.exposed and (last or walk.pipefail),
            reads=context.reads if index in (0, len(stages) - 1) else (),
            writes=context.writes if last else (),
            heredoc=context.heredoc if index == 0 else "",
            output_discarded=context.output_discarded and last,
        )
        _visit(stage, inner, walk)


def _redirected(node: Node, context: _Context, walk: _Walk) -> None:
    body = node.child_by_field_name("body")
    piped: list[Node] = []
    for redirect in node.children_by_field_name("redirect"):
        if redirect.type == "heredoc_redirect":
            context, more = _heredoc(redirect, context)
            piped += more
        else:
            context = _redirect(redirect, context)
    if body is None:
        if context.writes:
            walk.steps.append(_step(":", (), node, context))
    elif piped:
        _pipeline([body, *piped], context, walk)
    else:
        _visit(body, context, walk)


def _heredoc(redirect: Node, context: _Context) -> tuple[_Context, list[Node]]:
    piped: list[Node] = []
    for child in redirect.named_children:
        if child.type == "heredoc_body":
            context = replace(context, heredoc=context.heredoc + _text(child))
        elif child.type == "file_redirect":
            context = _redirect(child, context)
        elif child.type == "pipeline":
            piped += child.named_children
        elif child.type == "command":
            piped.append(child)
    return context, piped


def _redirect(redirect: Node, context: _Context) -> _Context:
    """Adds one `>`, `<`, `2>` or `<<<` to what is known of a statement."""
    if redirect.type == "herestring_redirect":
        return replace(context, heredoc=context.heredoc + _text(redirect)[3:].strip().strip("'\"") + "\n")
    operator = next((child.type for child in redirect.children if not child.is_named), ">")
    descriptor = redirect.child_by_field_name("descriptor")
    destination = redirect.child_by_field_name("destination")
    target = _word(destination).text if destination is not None else ""
    stream = _text(descriptor) if descriptor is not None else ""
    if operator == "<":
        return replace(context, reads=(*context.reads, target))
    if operator in (">&", "<&") and target.isdigit():
        return context
    nowhere = target == "/dev/null"
    errors = stream == "2" or operator in ("&>", "&>>") or (operator == ">&" and not stream)
    if errors:
        context = replace(context, errors_discarded=context.errors_discarded or nowhere)
    if stream != "2":
        context = replace(context, output_discarded=context.output_discarded or nowhere)
    return context if nowhere else replace(context, writes=(*context.writes, target))


def _command(node: Node, context: _Context, walk: _Walk) -> None:
    for redirect in node.children_by_field_name("redirect"):
        context = _redirect(redirect, context)
    for inner in _substitutions(node):
        free = replace(context, exposed=False, pipe=0, stage=0, writes=(), reads=(), heredoc="", substituted=True)
        _sequence(inner, free, walk)
    name = node.child_by_field_name("name")
    words = tuple(_word(child) for child in node.children_by_field_name("argument"))
    program = _word(name).text.removeprefix("\\") if name is not None else ""
    if program == "set":
        flags = " ".join(word.text for word in words)
        walk.errexit |= any(word.text.startswith("-") and "e" in word.text for word in words)
        walk.pipefail |= "pipefail" in flags
    else:
        walk.steps.append(_step(program, words, node, context))


def _step(program: str, words: tuple[Word, ...], node: Node, context: _Context) -> Step:
    return Step(
        program=program.rsplit("/", 1)[-1] if not program.startswith("./") else program,
        words=words,
        text=_text(node),
        exposed=context.exposed,
        hidden=context.hidden,
        certain=context.certain,
        background=context.background,
        fallback=context.fallback,
        guarded=context.guarded,
        errors_discarded=context.errors_discarded,
        output_discarded=context.output_discarded,
        writes=context.writes,
        reads=context.reads,
        heredoc=context.heredoc,
        pipe=context.pipe,
        stage=context.stage,
        last_stage=context.last_stage,
        substituted=context.substituted,
    )


def _substitutions(node: Node) -> Iterator[Node]:
    """The command and process substitutions directly inside a node, not those inside them."""
    pending = [(child, 0) for child in node.children]
    while pending:
        child, depth = pending.pop(0)
        if child.type in ("command_substitution", "process_substitution"):
            yield child
        elif depth < _DEEPEST:
            pending += [(inner, depth + 1) for inner in child.children]


def _word(node: Node) -> Word:
    pieces: list[str] = []
    dynamic = _literal_pieces(node, pieces, 0)
    return Word(
        text="".join(pieces) if not dynamic else _unquoted(_text(node)), pieces=tuple(pieces), dynamic=dynamic
    )


def _literal_pieces(node: Node, pieces: list[str], depth: int) -> bool:
    """Collects a word's literal parts; returns whether anything in it is filled in by the shell."""
    if node.type in _DYNAMIC or depth > _DEEPEST:
        return True
    match node.type:
        case "raw_string":
            pieces.append(_text(node)[1:-1])
        case "ansi_c_string":
            pieces.append(_text(node)[2:-1])
        case "string" | "concatenation" | "command_name" | "translated_string":
            return any(_literal_pieces(child, pieces, depth + 1) for child in node.named_children)
        case _:
            pieces.append(_text(node).replace("\\", "") if node.type == "word" else _text(node))
    return False


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"" else text.replace('"', "")


_PLAIN_WRAPPERS = frozenset(
    {"sudo", "doas", "nohup", "time", "command", "exec", "builtin", "stdbuf", "caffeinate", "setsid", "ionice"}
)
_RUNNERS = frozenset({"uv", "poetry", "pipenv", "pdm", "hatch", "rye", "bundle", "pnpm", "npx", "bunx", "pipx"})
_SHELLS = frozenset({"bash", "sh", "zsh", "dash", "ksh"})


def _unwrapped(step: Step, depth: int = 0) -> tuple[Step, ...]:
    """Looks through `sudo`, `timeout 5`, `env A=b`, `xargs`, `python -m`, `uv run`, and into `bash -c '…'`."""
    words = step.words
    inner = _inner_words(step)
    if step.program in _SHELLS and depth < 4:
        code = next(
            (words[i + 1] for i, word in enumerate(words[:-1]) if word.text.startswith("-") and "c" in word.text),
            None,
        )
        if code is not None:
            return tuple(_inside(step, each) for each in steps_of(code.text))
    if inner and depth < 8:
        name = inner[0].text
        program = name.rsplit("/", 1)[-1] if not name.startswith("./") else name
        return _unwrapped(replace(step, program=program, words=inner[1:]), depth + 1)
    return (step,)


def _inside(outer: Step, inner: Step) -> Step:
    """A step of `bash -c`, seen from outside."""
    return replace(
        inner,
        exposed=inner.exposed and outer.exposed,
        hidden=inner.hidden or outer.hidden,
        certain=inner.certain and outer.certain,
        background=inner.background or outer.background,
        errors_discarded=inner.errors_discarded or outer.errors_discarded,
        output_discarded=inner.output_discarded or outer.output_discarded,
        writes=inner.writes + outer.writes,
    )


def _inner_words(step: Step) -> tuple[Word, ...]:
    words = step.words
    match step.program:
        case "python" | "python3" if len(words) > 1 and words[0].text == "-m":
            return words[1:]
        case "env":
            return _after_options(tuple(word for word in words if "=" not in word.text.split("/")[0]), ())
        case "timeout":
            return _after_options(words, ("-s", "-k", "--signal", "--kill-after"))[1:]
        case "nice":
            return _after_options(words, ("-n",))
        case "xargs":
            return _after_options(words, ("-n", "-I", "-P", "-d", "-L", "-s", "-a", "-E"))
        case runner if runner in _RUNNERS:
            if runner in ("npx", "bunx"):
                return _after_options(words, ())
            return words[1:] if len(words) > 1 and words[0].text in ("run", "exec") and runner != "pnpm" else ()
        case wrapper if wrapper in _PLAIN_WRAPPERS:
            return _after_options(words, ("-u", "-g", "-n", "-o", "-c") if wrapper != "command" else ())
        case _:
            return ()


def _after_options(words: tuple[Word, ...], valued: tuple[str, ...]) -> tuple[Word, ...]:
    """What follows a wrapper's own options; `valued` options take the next word with them."""
    index = 0
    while index < len(words) and words[index].text.startswith("-"):
        index += 2 if words[index].text in valued else 1
    return words[index:]
