"""The section `a2a` of the configuration: the address, and the agents that foreign agents may ask."""

from __future__ import annotations

from pydantic import Field, field_validator

from artoo.agents.foreign.limits import Peer
from artoo.settings.sections import Section


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
