"""The settings of `artoo a2a`, with trust, tokens, and default limits of each foreign agent (5 open, 20 a day)."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator

from artoo.settings.expanded import HomePathText
from artoo.settings.sections import Number, Section, Whole


class Peer(Section):
    """One foreign agent, which submits work with its own token.

    `trust`: how its tasks are reviewed, whichever agent works on them. `agents`: the exposed agents that it may ask
    (empty: all). `project`: the directory of its tasks. `open`: the most unfinished tasks; `day`: the most messages
    in 24 hours; `calls`, `tokens`, `seconds`, `money` limit each run of a task.
    """

    trust: Literal["probation", "standard", "trusted", "senior"] = "probation"
    agents: tuple[str, ...] = ()
    project: HomePathText | None = None
    open: Whole = Field(default=5, ge=0, le=1_000)
    day: Whole = Field(default=20, ge=0, le=100_000)
    calls: Whole | None = Field(default=None, ge=1)
    tokens: Whole | None = Field(default=None, ge=1)
    seconds: Number | None = Field(default=None, gt=0)
    money: Number | None = Field(default=None, gt=0)


class ForeignAgents(Section):
    """The settings of `artoo a2a`. `url`: the external address, if there is a proxy in front of the server.

    `expose`: agents of the team that have their own card in addition to the team's.
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
