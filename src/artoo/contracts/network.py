"""Record what commands sent over the network, or were kept from sending (SPEC section 8)."""

from __future__ import annotations

from pydantic import Field

from artoo.contracts.base import Contract


class NetworkUsed(Contract):
    """Report that one connection of a command ended, or was refused at the egress proxy.

    `host` is in its plain form (small letters, no last dot, addresses as their systems write them), and what the
    command asked for when that is no host. `bytes_out` and `bytes_in` count what passed between the proxy and the
    host, so 0 bytes out means that nothing left. `refused` says why it did not come about or was cut. `act` names
    the call (ToolStarted); empty when no call had one.
    """

    act: str = ""
    host: str
    port: int = Field(ge=0, le=65535)
    bytes_out: int = Field(default=0, ge=0)
    bytes_in: int = Field(default=0, ge=0)
    refused: str | None = None
