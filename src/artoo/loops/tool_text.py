"""Describe tools in prompts, one line each, for planner and executor, and choose the other language."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType

from artoo.contracts.plan import MustNot
from artoo.ports.tools import ToolSpec
from artoo.prompts.segments import Segment

_SHOWN_PROHIBITIONS = 12
_SHOWN_TARGET = 80


@lru_cache(maxsize=64)
def tool_segments(specs: tuple[ToolSpec, ...], *, programs_apart: bool = False) -> Mapping[Segment, str]:
    """Describe artoo's own tools, then the user's tools (which differ between projects) and the skills.

    `programs_apart`: true to leave out artoo's own tools, for a model that writes programs instead of calling them.
    """
    shipped = () if programs_apart else tuple(spec for spec in specs if not spec.special)
    special = tuple(spec for spec in specs if spec.special)
    segments = {
        Segment.TOOLS: describe_tools(shipped),
        Segment.USER_TOOLS: describe_tools(special, programs_apart=programs_apart),
        Segment.AGENT_SKILLS: "\n".join(line for spec in specs for line in spec.offers),
    }
    return MappingProxyType(segments)


def tools_to_plan_with(specs: tuple[ToolSpec, ...]) -> Mapping[Segment, str]:
    """Describe the tools for the planner. artoo's own tools are listed by name, and the read-only ones also with
    their arguments."""
    shipped = sorted((spec for spec in specs if not spec.special), key=lambda spec: spec.priority)
    return {**tool_segments(specs), Segment.TOOLS: ", ".join(map(_signature, shipped))}


def _signature(spec: ToolSpec) -> str:
    if not spec.only_reads:
        return spec.name
    named = (each.name if each.required else f"{each.name}?" for each in spec.parameters)
    return f"{spec.name}({', '.join(named)})"


def describe_tools(specs: tuple[ToolSpec, ...], *, programs_apart: bool = False) -> str:
    """Describe each tool in one line, ordered by priority. The line has its name, its purpose, and the content of
    `input` and of the fenced block.

    `programs_apart`: true if the model writes programs for everything else, so that the form of a call must be
    described too.
    """
    lines = [_line(spec) for spec in sorted(specs, key=lambda spec: spec.priority)]
    if programs_apart and lines:
        lines.append('Instead of a program, one line uses a tool: {"tool": its name, "input": its input}')
    return "\n".join(lines)


def other_language(specs: Sequence[ToolSpec], tool: str) -> str:
    """Return a language that another tool runs. Return "" if there is none, or if `tool` runs no language."""
    running = [spec for spec in specs if spec.languages]
    if all(spec.name != tool for spec in running):
        return ""
    return next((spec.languages[0] for spec in running if spec.name != tool), "")


def program_in(language: str) -> str:
    """Write the instruction that asks a small model for a whole program in this language."""
    return f"Write a whole program in a ```{language} block."


def _line(spec: ToolSpec) -> str:
    parts = [f"- {spec.name}: {spec.description}"]
    inline = spec.inline
    if inline is not None:
        parts.append(f"input: {inline.description}")
    further = [each for each in spec.parameters if each is not inline and each.name != spec.body]
    if further:
        parts.append("more: " + ", ".join(f'"{each.name}": {each.description}' for each in further))
    body = next((parameter for parameter in spec.parameters if parameter.name == spec.body), None)
    if body is not None:
        parts.append(f"fenced block: {body.description}")
    return "; ".join(parts)


def prohibitions(must_not: MustNot) -> str:
    """List the prohibited tools and targets for a prompt, one line each.

    Scripts and long commands are left out of the list to save tokens. The tool layer refuses them nevertheless.
    """
    tools: dict[str, list[str]] = {}
    for tool, target in must_not.targets:
        if is_short(target):
            tools.setdefault(target, []).append(tool)
    lines = [*must_not.tools, *(f"{target} (with {', '.join(each)})" for target, each in tools.items())]
    return "\n".join(f"- {line}" for line in lines[:_SHOWN_PROHIBITIONS])


def is_short(target: str) -> bool:
    """Return whether a target is short enough to be named in a prompt; scripts and long commands are not."""
    return "\n" not in target and len(target) <= _SHOWN_TARGET
