"""The section `a2a` of the configuration: the address, and the default limits of each foreign agent."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field, field_validator

from artoo.contracts.agents import TrustLevel
from artoo.settings.expanded import HomePathText
from artoo.settings.sections import Number, Section, Whole


class Peer(Section):
    """One foreign agent, which submits work with its own token.

    `trust`: how its tasks are reviewed, whichever agent works on them. `agents`: the exposed agents that it may ask
    (empty: all). `project`: the directory of its tasks (None: the workspace). `open`: the most unfinished tasks;
    `day`: the most messages in 24 hours; `calls`, `tokens`, `seconds`, `money` limit each run of a task (None: no
    limit of its own).
    """

    trust: TrustLevel = TrustLevel.PROBATION
    agents: tuple[str, ...] = ()
    project: HomePathText | None = None
    open: Whole = Field(default=5, ge=0, le=1_000)
    day: Whole = Field(default=20, ge=0, le=100_000)
    calls: Whole | None = Field(default=None, ge=1)
    tokens: Whole | None = Field(default=None, ge=1)
    seconds: Number | None = Field(default=None, gt=0)
    money: Number | None = Field(default=None, gt=0)

    @property
    def directory(self) -> str:
        """Return the absolute directory of its tasks; empty for the workspace."""
        return str(Path(self.project).expanduser().absolute()) if self.project else ""


class ForeignAgents(Section):
    """The settings of `artoo a2a`. `url`: the address under which others reach the server, if a proxy is in front
    of it.

    `expose`: agents that have a card of their own, in addition to the card of the team.
    """

    url: str | None = Field(default=None, pattern=r"^https?://[^\s@#?]+$")
    expose: tuple[str, ...] = ()
    peers: dict[str, Peer] = Field(default_factory=dict[str, Peer])

    @field_validator("peers")
    @classmethod
    def _names(cls, given: dict[str, Peer]) -> dict[str, Peer]:
        # Imported here, because most configurations have no foreign agents.
        from artoo.agents.identity.identity import name_problem

        for name in given:
            if problem := name_problem(name):
                raise ValueError(problem)
        return given
