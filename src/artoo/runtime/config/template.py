"""Write the text of a new `config.yaml`, which is `template.yaml` with the default of each setting for `<>`."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from importlib.resources import files
from operator import getitem
from typing import Any, cast

from artoo.agents.heartbeat.backoff import LONGEST_INTERVAL, SHORTEST_INTERVAL
from artoo.control.effort import BUDGETS
from artoo.runtime.config.model import Config

_COLUMN = 24
"""Where comments begin, unless a setting is longer."""


def template_text() -> str:
    """Return the commented configuration, with every value at its default."""
    defaults: Any = Config().model_dump(mode="json", by_alias=True)
    text = files("artoo.runtime.config").joinpath("template.yaml").read_text(encoding="utf-8")
    for name, value in _figures().items():
        text = text.replace(f"<{name}>", value)
    path, lines = list[str](), list[str]()
    for line in text.splitlines():
        name = line.partition(":")[0]
        if name.strip().isidentifier():
            path[(len(name) - len(name.lstrip())) // 2 :] = [name.strip()]
        if "<>" in line:
            setting, comment, said = line.replace("<>", _in_yaml(reduce(getitem, path, defaults))).partition("  #")
            line = f"{setting:<{_COLUMN}}{comment}{said}" if comment else setting
        lines.append(line)
    return "\n".join((*lines, ""))


def _figures() -> dict[str, str]:
    """Return the numbers in comments: limits of the heartbeat, and budgets by effort."""
    efforts = BUDGETS.values()
    return {
        "shortest_interval": str(SHORTEST_INTERVAL),
        "longest_interval": str(LONGEST_INTERVAL),
        "seconds_by_effort": _listed(f"{each.seconds:,.0f}" for each in efforts),
        "calls_by_effort": _listed(f"{each.calls:,}" for each in efforts),
        "tokens_by_effort": _listed(f"{each.tokens:,}" for each in efforts),
    }


def _listed(numbers: Iterable[str]) -> str:
    *first, last = numbers
    return f"{', '.join(first)} or {last}"


def _in_yaml(value: object) -> str:
    """Return a default in YAML's flow style."""
    match value:
        case bool():
            return str(value).lower()
        case float():
            return f"{value:g}"
        case list():
            return f"[{', '.join(map(_in_yaml, cast('list[object]', value)))}]"
        case dict():
            pairs = cast("dict[str, object]", value).items()
            return f"{{{', '.join(f'{name}: {_in_yaml(each)}' for name, each in pairs)}}}"
        case _:
            return str(value)
