"""Find and create the folders of agents below `agents/`, and the text of a new HEARTBEAT.md.

The default agent, which the configuration names, is found too.
"""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from artoo.agents.identity.identity import DEFAULT_AGENT, Identity, identity_of, name_problem, read_identity
from artoo.contracts.errors import ConfigurationError

FOLDER, IDENTITY, HEARTBEAT, KNOWLEDGE = "agents", "identity.yaml", "HEARTBEAT.md", "knowledge.md"


@dataclass(frozen=True, slots=True)
class AgentFolder:
    """The paths of an agent's files. If the file `heartbeat` does not exist, the agent has no patrol.

    `borrowed`: true if the files are copies of a folder on another machine. If such copies differ from the accepted
    identity, the agent is not stopped.
    """

    name: str
    identity: Path
    heartbeat: Path
    borrowed: bool = False


@dataclass(frozen=True, slots=True)
class FoundAgents:
    """The agents of a home, sorted by name. For each other folder, a sentence describes its problem."""

    agents: tuple[AgentFolder, ...]
    problems: tuple[str, ...]

    def named(self, name: str) -> AgentFolder:
        """Return the agent's folder. Raises ConfigurationError if there is none."""
        for agent in self.agents:
            if agent.name == name:
                return agent
        known = ", ".join(agent.name for agent in self.agents) or "none"
        raise ConfigurationError(
            f"There is no agent {name!r}; there are: {known}. `artoo agent new {name}` makes it."
        )


def folder_of(home: Path, name: str) -> AgentFolder:
    """Return the paths of the agent's folder, which need not exist."""
    place = home / FOLDER / name
    return AgentFolder(name, place / IDENTITY, place / HEARTBEAT)


def find_agents(home: Path, default_identity: Path, default_heartbeat: Path) -> FoundAgents:
    """Find the agents in the folders below `agents/`. The default agent is found if its identity file exists."""
    agents: list[AgentFolder] = []
    problems: list[str] = []
    if default_identity.exists():
        agents.append(AgentFolder(_default_name(default_identity), default_identity, default_heartbeat))
    for folder in _folders(home / FOLDER):
        twin = next((agent for agent in agents if agent.name.lower() == folder.name.lower()), None)
        if twin is not None:
            problems.append(
                f"{folder}: there are two agents called {twin.name!r}, the other in {twin.identity.parent};"
                " rename or remove one"
            )
        elif problem := name_problem(folder.name):
            problems.append(f"{folder}: {problem}; rename the folder")
        elif not (folder / IDENTITY).is_file():
            problems.append(f"{folder}: there is no {IDENTITY} in it; write one, or remove the folder")
        else:
            agents.append(folder_of(home, folder.name))
    return FoundAgents(tuple(sorted(agents, key=lambda agent: agent.name)), tuple(problems))


def create_agent(
    home: Path, name: str, *, role: str, persona: str, skills: Sequence[str] = (), must_not: Sequence[str] = ()
) -> Identity:
    """Create an agent's folder with identity and HEARTBEAT.md, atomically.

    Raises ConfigurationError if the name is invalid or already used, or if the persona may not be in an identity
    file.
    """
    if problem := name_problem(name):
        raise ConfigurationError(problem)
    place = home / FOLDER / name
    if any(folder.name.lower() == name for folder in _folders(home / FOLDER)):
        raise ConfigurationError(f"There is an agent called {name!r} already, in {place}; choose another name.")
    text = _identity_text(role, persona, skills, must_not)
    identity = identity_of(text.encode(), place / IDENTITY, name)
    # The folder is written under a temporary name and then renamed, so that a crash leaves no incomplete agent.
    # Hidden folders are ignored.
    making = home / FOLDER / f".new-{name}"
    try:
        shutil.rmtree(making, ignore_errors=True)
        making.mkdir(mode=0o700, parents=True)
        (making / IDENTITY).write_text(text, encoding="utf-8")
        (making / HEARTBEAT).write_text(_HEARTBEAT_TEXT, encoding="utf-8")
        making.rename(place)
    except OSError as error:
        with suppress(OSError):
            shutil.rmtree(making)
        raise ConfigurationError(f"{place} cannot be made: {error.strerror}") from error
    return identity


def _folders(place: Path) -> list[Path]:
    """Return the folders in `place` that are not hidden, sorted."""
    try:
        return sorted(entry for entry in place.iterdir() if entry.is_dir() and not entry.name.startswith("."))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise ConfigurationError(f"{place} cannot be read: {error.strerror}") from error


def _default_name(path: Path) -> str:
    """Return the name of the default agent from its file. An error in the file is ignored here, because it is
    reported when the agent is loaded."""
    try:
        return read_identity(path, None).name
    except ConfigurationError:
        return DEFAULT_AGENT


def _identity_text(role: str, persona: str, skills: Sequence[str], must_not: Sequence[str]) -> str:
    return (
        "# Who this agent is. After a change it stops until you accept it: artoo agent accept NAME\n"
        f"role: {_quoted(role)}\n"
        f"persona: |\n{textwrap.indent(persona.strip() or role, '  ')}\n"
        f"skills: [{', '.join(map(_quoted, skills))}]\n"
        "limits:\n"
        f"  must_not: [{', '.join(map(_quoted, must_not))}]   # tools that it has no right to use\n"
        "  # calls: 50        # of a model, for one task; also tokens, seconds, money\n"
        "tier: default        # or brain, or tool: the model for all that it does\n"
    )


def _quoted(text: str) -> str:
    """Return a text as a YAML scalar in single quotes on one line."""
    return "'" + " ".join(text.split()).replace("'", "''") + "'"


_HEARTBEAT_TEXT = """\
<!-- What this agent looks after unasked. Each item needs `every:` or `when:`; without items it does nothing. -->
"""
