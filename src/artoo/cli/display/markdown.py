"""Render the Markdown of an answer for a terminal, wrapped to its columns, and split a growing text into blocks.

The dialect is CommonMark with tables and `~~`. It is narrower where the usual reading would change a fact of an
answer that was not meant as Markdown: HTML, entities and `_` stay as they are (`List<int>`, `__init__.py`), a `*`
inside an expression is a star (`2*3*4`), list items keep their own numbers, and lines keep their ends.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator
from functools import cache

from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline, emphasis
from markdown_it.tree import SyntaxTreeNode
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from artoo.cli.display.line_wrap import cells, folded
from artoo.cli.display.symbols import BAR, BULLET

_STYLES = {"strong": ("1", "22"), "em": ("3", "23"), "s": ("9", "29"), "quiet": ("2", "22"), "code": ("36", "39")}
"""The SGR code that begins each style, and the code that ends only this style, because styles are nested."""
_UNUSED_RULES = ("html_block", "html_inline", "entity", "image", "reference", "lheading")
_ESCAPABLE = "*_`|#~"
"""The characters before which a backslash is removed. Before others it may belong to a path or an expression."""
_ENDS, _STARTS = re.compile(r"[0-9A-Za-z)\]}]"), re.compile(r"[0-9A-Za-z(\[{]")
_ALIGNED: dict[str, str] = {"text-align:right": "right", "text-align:center": "center"}


def rendered(text: str, columns: int) -> str:
    """Return safe Markdown text with its blocks formatted for `columns` columns, and with SGR codes."""
    return "\n".join(_stacked(_tree(text).children, columns, text.split("\n")))


def split_complete(text: str) -> tuple[str, str]:
    """Split a growing text into the blocks that cannot change any more, and the last block, which still grows."""
    # The last line may be half a line, which would be read as something else.
    *lines, _ = text.split("\n")
    starts = [node.map[0] for node in _pieces(_tree("\n".join(lines)).children) if node.map]
    complete = "".join(f"{line}\n" for line in lines[: starts[-1] if starts else 0])
    return complete, text[len(complete) :]


def _tree(text: str) -> SyntaxTreeNode:
    return SyntaxTreeNode(_parser().parse(text))


def _stacked(nodes: Iterable[SyntaxTreeNode], columns: int, lines: list[str]) -> Iterator[str]:
    """Yield the rows of blocks. Where `lines`, the source, has blank lines between two blocks, one row is blank."""
    below = -1
    for node in _pieces(nodes):
        start, end = node.map or (below, below)
        if below >= 0 and any(map(_is_blank, lines[below:start])):
            yield ""
        yield from _rows(node, columns, lines)
        while end > start + 1 and _is_blank(lines[end - 1]):
            end -= 1
        below = end


def _is_blank(line: str) -> bool:
    """Check whether a line is blank, also inside a quotation."""
    return not line.strip(" \t>")


def _pieces(nodes: Iterable[SyntaxTreeNode]) -> Iterator[SyntaxTreeNode]:
    """Yield the blocks, and the items of a list each by itself, because they are complete one by one."""
    for node in nodes:
        if node.type in ("bullet_list", "ordered_list"):
            yield from node.children
        else:
            yield node


def _rows(node: SyntaxTreeNode, columns: int, lines: list[str]) -> list[str]:
    """Lay out one block as rows of a terminal."""
    match node.type:
        case "heading":
            return [f"\x1b[{'1;4' if node.tag == 'h1' else '1'}m{row}\x1b[0m" for row in _prose(node, columns)]
        case "fence" | "code_block":
            indent = "  " if node.type == "fence" else "    "
            return [f"{indent}{_styled(line, 'code')}" for line in node.content.removesuffix("\n").split("\n")]
        case "list_item":
            mark = f"{node.info}{node.markup} " if node.info else f"{BULLET if node.markup in '-*' else '+'} "
            return _marked(node, columns, lines, mark, " " * len(mark))
        case "blockquote":
            return _marked(node, columns, lines, *[_styled(f"{BAR} ", "quiet")] * 2)
        case "hr":
            return [_styled("─" * min(columns, 40), "quiet")]
        case "table":
            return _table(node, columns)
        case "paragraph":
            # The parser strips the first line's indentation, which may align it with the lines below.
            first = lines[node.map[0]] if node.map and node.level == 0 else ""
            return _prose(node, columns, first[: len(first) - len(first.lstrip(" "))])
        case _:
            return node.content.split("\n")


def _marked(node: SyntaxTreeNode, columns: int, lines: list[str], mark: str, others: str) -> list[str]:
    """Lay out the blocks of an item or a quotation. `mark` begins its first row, and `others` each other row."""
    rows = list(_stacked(node.children, max(1, columns - cells(mark)), lines)) or [""]
    return [f"{others if number else mark}{row}".rstrip() for number, row in enumerate(rows)]


def _prose(node: SyntaxTreeNode, columns: int, indent: str = "") -> list[str]:
    text = indent + "".join(map(_inline, node.children))
    return [row for line in text.split("\n") for row in folded(line, columns)]


def _inline(node: SyntaxTreeNode) -> str:
    """Return a piece of a line with the SGR codes of its style. The target of a link is shown, not hidden."""
    match node.type:
        case "softbreak" | "hardbreak":
            return "\n"
        case "code_inline":
            return _styled(node.content, "code")
        case "strong" | "em" | "s":
            return _styled("".join(map(_inline, node.children)), node.type)
        case "link":
            shown, target = "".join(map(_inline, node.children)), str(node.attrs.get("href", ""))
            return shown if node.markup == "autolink" or shown == target else f"{shown} ({target})"
        case _:
            return "".join(map(_inline, node.children)) if node.children else node.content


def _styled(text: str, style: str) -> str:
    begin, end = _STYLES[style]
    return f"\x1b[{begin}m{text}\x1b[{end}m" if text else ""


def _table(node: SyntaxTreeNode, columns: int) -> list[str]:
    head, *body = [row for part in node.children for row in part.children]
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    for cell in head.children:
        align = _ALIGNED.get(str(cell.attrs.get("style", "")), "left")
        table.add_column(_cell(cell), justify=align, overflow="fold")  # pyright: ignore[reportArgumentType]
    for row in body:
        table.add_row(*map(_cell, row.children))
    written = io.StringIO()
    console = Console(
        file=written, width=columns, force_terminal=True, color_system="standard", legacy_windows=False, _environ={}
    )
    console.print(table)
    return [row.rstrip() for row in written.getvalue().rstrip("\n").split("\n")]


def _cell(node: SyntaxTreeNode) -> Text:
    return Text.from_ansi("".join(map(_inline, node.children)))


class _Parser(MarkdownIt):
    """A parser that leaves the targets of links as they are."""

    def normalizeLink(self, url: str) -> str:  # noqa: N802 (markdown-it's name)
        return url

    def normalizeLinkText(self, link: str) -> str:  # noqa: N802 (markdown-it's name)
        return link


@cache
def _parser() -> MarkdownIt:
    """Return the parser of the dialect that the module describes."""
    parser = _Parser("commonmark", {"html": False}).enable(["table", "strikethrough"]).disable(_UNUSED_RULES)
    for rule in (_line_end, _stars, _escape):
        parser.inline.ruler.at(_REPLACED[rule.__name__], rule)
    return parser


_REPLACED = {"_line_end": "newline", "_stars": "emphasis", "_escape": "escape"}


def _line_end(state: StateInline, silent: bool) -> bool:
    """Keep each line end and the indentation of the next line."""
    if state.src[state.pos] != "\n":
        return False
    if not silent:
        state.push("hardbreak", "br", 0)
    state.pos += 1
    return True


def _stars(state: StateInline, silent: bool) -> bool:
    """Read `*` as emphasis, but not `_`, and not a `*` between two parts of an expression."""
    if state.src[state.pos] != "*":
        return False
    run = state.scanDelims(state.pos, True)
    end = state.pos + run.length
    before, after = state.src[state.pos - 1 : state.pos], state.src[end : end + 1]
    if _ENDS.fullmatch(before) and _STARTS.fullmatch(after):
        if not silent:
            state.pending += "*" * run.length
        state.pos = end
        return True
    return emphasis.tokenize(state, silent)


def _escape(state: StateInline, silent: bool) -> bool:
    """Remove a backslash before a character of Markdown."""
    after = state.src[state.pos + 1 : state.pos + 2]
    if state.src[state.pos] != "\\" or not after or after not in _ESCAPABLE:
        return False
    if not silent:
        state.pending += after
    state.pos += 2
    return True
