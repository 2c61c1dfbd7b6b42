"""The record of one network connection of a command, allowed or refused.

Reference: SPEC section 8.
"""

from __future__ import annotations

from pydantic import Field

from artoo.contracts.base import Contract


class NetworkUsed(Contract):
    """A record that one connection of a command ended, or that the egress proxy refused it.

    `host` is normalised (lower case, no trailing dot, addresses in standard form); if the command requested
    something that is no host, it is that text. `bytes_out` and `bytes_in` count the bytes between the proxy and
    the host, so 0 bytes out means that no data left the machine. `refused` says why the connection was refused or
    interrupted. `act` names the call (ToolStarted); it is empty if the connection belongs to no call."""

    act: str = ""
    host: str
    port: int = Field(ge=0, le=65535)
    bytes_out: int = Field(default=0, ge=0)
    bytes_in: int = Field(default=0, ge=0)
    refused: str | None = None
