"""Change one value of a YAML file in place, preserving comments, order and all other lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from artoo.contracts.errors import ConfigurationError
from artoo.settings.places import Value
from artoo.settings.yaml_file import NULL, with_numbers

# Number of spaces by which each level of a new section is indented.
STEP = 2


class _Writer(yaml.SafeDumper):
    """PyYAML's safe dumper, except that it quotes text that artoo's reader would read as a number."""

    yaml_implicit_resolvers = with_numbers(yaml.SafeDumper.yaml_implicit_resolvers)


def with_value(text: str, route: Sequence[str], value: Value) -> str:
    """Return the text of the file with `value` at `route`, which contains the names of nested settings.

    Raises ConfigurationError if the route leads through a value that is not a section, or ends at a whole section.
    """
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    if root is None or root.tag == NULL:
        text = text[: root.start_mark.index] + text[root.end_mark.index :] if root is not None else text
        return f"{text.rstrip()}\n{_lines(route, value, 0)}".lstrip("\n")
    key: Node = root
    node: Node = root
    for depth, name in enumerate(route):
        if not isinstance(node, MappingNode):
            raise ConfigurationError(f"{'.'.join(route[:depth])} is a value and no section")
        found = next((pair for pair in node.value if pair[0].value == name), None)
        if found is None:
            return _inserted(text, node, route[depth:], value)
        key, node = found
        if depth < len(route) - 1 and (_is_empty(node) or _is_nothing(node)):
            below = _lines(route[depth + 1 :], value, key.start_mark.column + STEP)
            return f"{text[: key.end_mark.index]}:\n{below.rstrip()}{text[node.end_mark.index :]}"
    if isinstance(node, MappingNode) and not _is_empty(node):
        raise ConfigurationError(f"{'.'.join(route)} is a section; name one of its settings")
    # An alias has the position of its anchor, which is earlier in the file.
    if node.start_mark.index < key.start_mark.index:
        raise ConfigurationError(f"{'.'.join(route)} is an alias of another value; edit the file")
    start, end = node.start_mark.index, _end(node).index
    kept = text[start:end]
    space = kept[len(kept.rstrip()) :]
    between = text[key.end_mark.index : start].partition(":")[2]
    if "\n" in between:  # The dashes of a list may start in the first column, but the new value must not.
        return f"{text[: key.end_mark.index]}: {_written(value)}{between.rstrip()}{space}{text[end:]}"
    gap = "" if start and text[start - 1].isspace() else " "
    return f"{text[:start]}{gap}{_written(value)}{space}{text[end:]}"


def _end(node: Node) -> yaml.Mark:
    """Return the end of a value.

    For a value of several lines, the parser's end is at the next setting, after any comments.
    """
    if isinstance(node, MappingNode) and node.value and not node.flow_style:
        return _end(node.value[-1][1])
    if isinstance(node, SequenceNode) and node.value and not node.flow_style:
        return _end(node.value[-1])
    return cast(yaml.Mark, node.end_mark)


def _inserted(text: str, section: MappingNode, route: Sequence[str], value: Value) -> str:
    """Insert a setting before the first setting that its section has."""
    if section.flow_style:
        raise ConfigurationError("a section in braces cannot be added to; write it in lines, or edit the file")
    first = section.value[0][0].start_mark
    begin = text.rfind("\n", 0, first.index) + 1
    return f"{text[:begin]}{_lines(route, value, first.column)}{text[begin:]}"


def _lines(route: Sequence[str], value: Value, indent: int) -> str:
    *sections, name = route
    heads = "".join(f"{' ' * (indent + STEP * depth)}{_written(each)}:\n" for depth, each in enumerate(sections))
    return f"{heads}{' ' * (indent + STEP * len(sections))}{_written(name)}: {_written(value)}\n"


def _written(value: Value) -> str:
    """Format a value as one line of any length, because further lines would need the indentation of the section."""
    text = yaml.dump(value, Dumper=_Writer, default_flow_style=True, allow_unicode=True, width=float("inf"))
    return text.removesuffix("...\n").strip()


def _is_empty(node: Node) -> bool:
    """Return whether a node is an empty section. A value may replace it without loss."""
    return isinstance(node, MappingNode) and not node.value


def _is_nothing(node: Node) -> bool:
    return isinstance(node, ScalarNode) and not node.value
