"""Parse YAML with the line and column of each value, with limits on depth and size, and rules for numbers."""

from __future__ import annotations

import re
from pathlib import Path

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from artoo.contracts.errors import ConfigurationError
from artoo.settings.places import Place, Places, Route, Tree, Value, dotted

# Limits for the nesting levels and for the values of a file, because aliases could make a small file grow without
# end.
DEEPEST, LARGEST = 12, 5_000

Resolvers = dict[str, list[tuple[str, re.Pattern[str]]]]
"""The patterns of plain scalars with their tags, by the first character of the scalar."""

_INT, _FLOAT = "tag:yaml.org,2002:int", "tag:yaml.org,2002:float"
NULL = "tag:yaml.org,2002:null"
# For each kind of number: the first characters, the tag and the pattern of YAML 1.2 (core schema, section 10.3.2).
_NUMBERS = (
    ("-+0123456789", _INT, re.compile(r"^(?:[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)$")),
    (
        "-+.0123456789",
        _FLOAT,
        re.compile(
            r"^(?:[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$"
        ),
    ),
)


def with_numbers(known: Resolvers) -> Resolvers:
    """Return PyYAML's patterns of plain scalars with the numbers of YAML 1.2 added."""
    found = {first: list(patterns) for first, patterns in known.items()}
    for firsts, tag, pattern in _NUMBERS:
        for first in firsts:
            found.setdefault(first, []).append((tag, pattern))
    return found


def _without_numbers(known: Resolvers) -> Resolvers:
    return {first: [one for one in patterns if one[0] not in (_INT, _FLOAT)] for first, patterns in known.items()}


class _Reader(yaml.SafeLoader):
    """PyYAML's safe loader with the numbers of YAML 1.2: `010` is the number ten, while `1:30` and `1_0` are
    text."""

    yaml_implicit_resolvers = with_numbers(_without_numbers(yaml.SafeLoader.yaml_implicit_resolvers))


def _integer(_: yaml.SafeLoader, node: ScalarNode) -> int:
    """Return the number of an integer scalar. It is decimal unless it begins with 0o or 0x."""
    text = str(node.value)
    return int(text, 0) if text[:2] in ("0o", "0x") else int(text)


_Reader.add_constructor(_INT, _integer)


def parse(text: str, path: Path) -> tuple[Tree, Places]:
    """Return the values of a file's text, and their places. Raises ConfigurationError with line and column if the
    syntax is wrong."""
    try:
        reader = _Reader(text)
        return _Walk(reader, path).tree(reader.get_single_node())
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{path}:{mark.line + 1}:{mark.column + 1}" if mark is not None else str(path)
        raise ConfigurationError(f"{where}: not valid YAML: {error.problem or error.context}") from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise ConfigurationError(f"{path}:{line}: a character that YAML does not allow") from error
    except RecursionError as error:
        raise _too_large(path) from error


def _too_large(path: Path) -> ConfigurationError:
    return ConfigurationError(f"{path}: too large or too deep for a file of settings")


class _Walk:
    """One pass over the nodes of the parsed file."""

    def __init__(self, reader: _Reader, path: Path) -> None:
        self._reader = reader
        self._places = Places(path)
        self._seen = 0

    def tree(self, root: Node | None) -> tuple[Tree, Places]:
        """Read the whole file. A file that contains only comments, `---`, `null` or `~` is empty."""
        if root is None or root.tag == NULL:
            return {}, self._places
        if not isinstance(root, MappingNode):
            raise ConfigurationError(f"{self._places.path}:1:1: must be settings of the form `name: value`")
        return self._mapping(root, ()), self._places

    def _value(self, node: Node, route: Route) -> Value:
        self._seen += 1
        if self._seen > LARGEST or len(route) > DEEPEST:
            raise _too_large(self._places.path)
        self._places.values[route] = _place(node)
        if isinstance(node, MappingNode):
            return self._mapping(node, route)
        if isinstance(node, SequenceNode):
            return [self._value(item, (*route, index)) for index, item in enumerate(node.value)]
        return self._scalar(node, route)

    def _mapping(self, node: MappingNode, route: Route) -> Tree:
        values: Tree = {}
        for key_node, value_node in node.value:
            key = str(key_node.value) if isinstance(key_node, ScalarNode) else ""
            if not key:
                self._complain(key_node, "a name of a setting must be a word")
            elif key in values:
                first = self._places.keys[(*route, key)].line
                self._complain(
                    key_node, f"{dotted((*route, key))} stands here a second time (first in line {first})"
                )
            else:
                self._places.keys[(*route, key)] = _place(key_node)
                values[key] = self._value(value_node, (*route, key))
        return values

    def _scalar(self, node: Node, route: Route) -> Value:
        """Return a scalar as a number, a boolean, None or text. Values of other YAML types (such as dates and tags)
        stay text."""
        try:
            value: object = self._reader.construct_object(node)  # pyright: ignore[reportUnknownMemberType]
        except (yaml.constructor.ConstructorError, ValueError):
            self._complain(node, f"{dotted(route)} has a value of a kind that settings do not have")
            return str(node.value)
        return value if value is None or isinstance(value, str | int | float | bool) else str(node.value)

    def _complain(self, node: Node, what: str) -> None:
        self._places.problems.append(self._places.problem_at(_place(node), what))


def _place(node: Node) -> Place:
    return Place(line=node.start_mark.line + 1, column=node.start_mark.column + 1)
