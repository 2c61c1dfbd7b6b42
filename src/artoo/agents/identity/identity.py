"""Parse an agent's identity file (name, role, persona, skills, limits, tier), and verify its SHA-256.

Reference: SPEC section 11, procedural.

name: ada                     # optional; the folder's name
role: researcher
persona: |
  You look things up and say where you found them.
skills: [search, summaries]
limits: {must_not: [shell], calls: 50, tokens: 200000, seconds: 600, money: 0.5}
tier: default                 # or brain, or tool: the model for all that it does
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from artoo.contracts.agents import AGENT_NAME, RESERVED_NAMES
from artoo.contracts.errors import ConfigurationError
from artoo.prompts.segments import Segment
from artoo.settings.places import Places, Problem, Tree
from artoo.settings.problems import problems_of, report
from artoo.settings.sections import Number, Section, Whole
from artoo.settings.text_file import bytes_of, decoded

MOST_SKILLS = 32

DEFAULT_AGENT = "artoo"
"""The name of the default agent (`runtime.memory.procedural.path`) if its file contains no name."""

_NAME = re.compile(AGENT_NAME)


def _one_line(given: object) -> object:
    """Convert a single word to a list with this word."""
    return [given] if isinstance(given, str) else given


Words = Annotated[tuple[Annotated[str, Field(min_length=1, max_length=500)], ...], BeforeValidator(_one_line)]


class IdentityLimits(Section):
    """The limits of one agent. `must_not`: identities of tools, such as `shell` or `shell:curl`.

    The other fields limit one task of the agent: model calls, tokens, seconds, and money in the currency of the
    prices. A field that is None is taken from the configuration.
    """

    must_not: Words = ()
    calls: Whole | None = Field(default=None, ge=1)
    tokens: Whole | None = Field(default=None, ge=1)
    seconds: Number | None = Field(default=None, gt=0, le=7 * 86_400)
    money: Number | None = Field(default=None, gt=0)


class IdentityFile(Section):
    """The content of an identity file."""

    name: str | None = None
    role: str = Field(min_length=1, max_length=200)
    persona: str = Field(min_length=1, max_length=8_000)
    skills: Words = Field(default=(), max_length=MOST_SKILLS)
    limits: IdentityLimits = Field(default_factory=IdentityLimits.model_construct)
    tier: Literal["default", "brain", "tool"] = "default"


@dataclass(frozen=True, slots=True)
class Identity:
    """The identity of an agent, as its file defines it. `sha256` (hex) is the digest of the file's bytes, and
    `path` the location of the file.

    `tier`: the tier of models that the agent uses for all of its work. With `default`, each role uses the model of
    its own tier.
    """

    name: str
    role: str
    persona: str
    skills: tuple[str, ...]
    limits: IdentityLimits
    tier: Literal["default", "brain", "tool"]
    path: Path
    sha256: str


def name_problem(name: str) -> str | None:
    """Return the reason why a name is not allowed for an agent. Return None if it is allowed."""
    if name in RESERVED_NAMES:
        return f"an agent cannot be called {name!r}: artoo itself uses that name"
    if _NAME.fullmatch(name) is None:
        return (
            f"an agent cannot be called {name!r}: a name has 1 to 32 characters, begins with a lower-case letter,"
            " and has lower-case letters, digits, - and _ only"
        )
    return None


def read_identity(path: Path, name: str | None) -> Identity:
    """Read an identity file. If `name` is None, the name in the file is used, or `artoo` if the file contains none.

    Raises ConfigurationError that lists every problem with file, line and column.
    """
    raw = bytes_of(path)
    if raw is None:
        raise ConfigurationError(f"{path} does not exist; an agent needs an identity file: `artoo agent new NAME`")
    return identity_of(raw, path, name)


def identity_of(raw: bytes, path: Path, name: str | None) -> Identity:
    """Parse the bytes of an identity file. Raises ConfigurationError in the same cases as `read_identity`."""
    # Imported here, because importing PyYAML takes 35 ms.
    from artoo.settings.yaml_file import parse

    tree, places = parse(decoded(raw, path), path)
    problems = [*places.problems, *problems_of(tree, places, IdentityFile, "the identity")]
    problems += _name_problems(tree, places, name)
    if problems:
        raise ConfigurationError(report(problems, "the identity"))
    file = IdentityFile.model_validate(tree)
    return Identity(
        name=name or file.name or DEFAULT_AGENT,
        role=file.role.strip(),
        persona=file.persona.strip(),
        skills=file.skills,
        limits=file.limits,
        tier=file.tier,
        path=path,
        sha256=hashlib.sha256(raw).hexdigest(),
    )


def digest(path: Path) -> str | None:
    """Return the SHA-256 (hex) of the file as it is now. Return None if there is no file. Raises
    ConfigurationError."""
    raw = bytes_of(path)
    return None if raw is None else hashlib.sha256(raw).hexdigest()


def segments(identity: Identity) -> Mapping[Segment, str]:
    """Return the segments that the agent adds to every prompt. A segment that is empty is not part of the
    prompt."""
    persona = "" if identity.persona.strip() == identity.role.strip() else identity.persona
    skills = "\n".join(f"- {skill}" for skill in identity.skills)
    return {
        Segment.AGENT_PERSONA: f"You are {identity.name}, {identity.role}.\n{persona}".strip(),
        Segment.AGENT_SKILLS: f"What you are good at:\n{skills}" if skills else "",
        Segment.AGENT_LIMITS: _limits_text(identity.limits),
    }


def _limits_text(limits: IdentityLimits) -> str:
    """Return the text about the limits for a prompt. Other code enforces the limits."""
    lines: list[str] = []
    if limits.must_not:
        lines.append(f"You have no right to use: {', '.join(limits.must_not)}.")
    bounds = {"model calls": limits.calls, "tokens": limits.tokens, "seconds": limits.seconds}
    given = [
        f"{value:g} {unit}" if unit == "seconds" else f"{value} {unit}" for unit, value in bounds.items() if value
    ]
    if given:
        lines.append(f"One task may take you at most {', '.join(given)}.")
    return "\n".join(lines)


def _name_problems(tree: Tree, places: Places, name: str | None) -> list[Problem]:
    """Check the name in the file. It must equal the name of the folder. If no name of a folder is given, it must be
    an allowed name."""
    given = tree.get("name")
    if not isinstance(given, str):
        return []
    if name is not None and given != name:
        return [
            places.problem(
                ("name",), f"name is {given!r}, but the folder is {name!r}; they must agree (or leave name out)"
            )
        ]
    problem = name_problem(given)
    return [places.problem(("name",), problem)] if problem else []
