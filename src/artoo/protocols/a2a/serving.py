"""`artoo a2a`, the server for foreign agents, with token files and the seconds of grace.

The server also runs the team, unless `artoo serve` runs for this home.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from a2a.types import AgentCard
from starlette.types import ASGIApp

from artoo.agents.identity.identity import read_identity
from artoo.contracts.errors import ConfigurationError
from artoo.protocols.a2a.app import application, place_of
from artoo.protocols.a2a.card import Signer, agent_card, own_signer, team_card
from artoo.protocols.a2a.following import Following, again
from artoo.protocols.a2a.handler import BoardAgent
from artoo.protocols.a2a.outward import outward, permits_of
from artoo.protocols.a2a.push import Pushes
from artoo.protocols.ending import until_asked_to_end
from artoo.protocols.http import HOST, listening_at, own_names, own_token, serve_on
from artoo.protocols.looking import looking_at
from artoo.runtime.app.artoo import Artoo
from artoo.runtime.app.exception_groups import alone
from artoo.runtime.config.endpoints import endpoint
from artoo.runtime.config.model import Config
from artoo.team.locks import only_instance, serving
from artoo.team.office import Office, open_office
from artoo.team.team import open_team

Say = Callable[[str], None]

GRACE_SECONDS = 20.0
"""Number of seconds that running work has to end after a signal to the process. After that, its tasks are returned
to the board."""


def token_file(name: str) -> str:
    """Return the name of the file in artoo's home with the token of a foreign agent."""
    return f"a2a-{name}-token"


async def serve(config: Config, port: int, say: Say) -> None:
    """Serve HTTP on the loopback interface until a signal arrives. If `port` is 0, any free port is used. Raises
    ConfigurationError."""
    if not config.a2a.peers:
        raise ConfigurationError("no foreign agent may ask: name one below `a2a: peers:` of config.yaml")
    await alone(_serve(config, port, say))


async def _serve(config: Config, port: int, say: Say) -> None:
    async with AsyncExitStack() as stack:
        other = serving(config.home)
        if other is None:
            stack.enter_context(only_instance(config.home))
        listening = stack.enter_context(listening_at(port))
        office = await stack.enter_async_context(open_office(config, lasting=say))
        door = await _door(office, listening.getsockname()[1])
        if other is None:
            await stack.enter_async_context(_team_at_work(office, say))
        else:
            say(f"artoo serve (process {other}) does the work")
        for name in sorted(config.a2a.peers):
            say(f"the token of {name} is in {config.home / token_file(name)}")
        say(f"A2A at {door.url}; Ctrl-C stops")
        await until_asked_to_end(door.serve(listening))


@dataclass(frozen=True, slots=True)
class Door:
    """The server for foreign agents. It has a public address, an application, and push notifications."""

    url: str
    app: ASGIApp
    pushes: Pushes

    async def serve(self, listening: socket.socket) -> None:
        """Answer requests and send push notifications, until cancelled."""
        async with asyncio.TaskGroup() as group, outward(self.pushes.permits) as client:
            pushing = group.create_task(again(lambda: self.pushes.run(client)))
            await serve_on(listening, self.app)
            pushing.cancel()


async def _door(office: Office, port: int) -> Door:
    """Build the server. Raises ConfigurationError, for example if the configuration exposes an agent that does not
    exist."""
    config = office.config
    url = (config.a2a.url or f"http://{HOST}:{port}").rstrip("/")
    following = Following(office, looking_at(config).clean)
    pushes = Pushes(following, permits_of(config.allow), office.clock)
    signer = await asyncio.to_thread(own_signer, config.home)
    peers = dict(config.a2a.peers)
    cards = await _cards(office, url, signer)

    agents = {name: (card, BoardAgent(name, peers, following, pushes)) for name, card in cards.items()}
    tokens = {name: own_token(config.home, token_file(name)) for name in peers}
    names = [*own_names(port), url.partition("://")[2].partition("/")[0]]
    return Door(url, application(agents, signer, tokens, names), pushes)


async def _cards(office: Office, url: str, signer: Signer) -> dict[str, AgentCard]:
    """Build the cards of the exposed agents, by name. The team's card has the empty name."""
    cards = {"": signer.sign(team_card(url), url)}
    found = await asyncio.to_thread(office.folders)
    for name in office.config.a2a.expose:
        folder = found.named(name)
        await office.registry.get(name)
        identity = await asyncio.to_thread(read_identity, folder.identity, name)
        cards[name] = signer.sign(agent_card(identity, url + place_of(name)), url)
    return cards


@asynccontextmanager
async def _team_at_work(office: Office, say: Say) -> AsyncGenerator[None]:
    """Run the team while the block runs. Afterwards, running work is ended or returned to the board."""
    small = endpoint(office.config, "brain", os.environ) is None
    async with (
        Artoo(office.config) as artoo,
        open_team(office, artoo, small_model=small, grace=GRACE_SECONDS) as team,
        asyncio.TaskGroup() as group,
    ):
        ready = asyncio.Event()
        running = group.create_task(team.run(ready=ready.set))
        begun = group.create_task(ready.wait())
        await asyncio.wait({running, begun}, return_when=asyncio.FIRST_COMPLETED)
        begun.cancel()
        try:
            for problem in team.problems:
                say(problem)
            if not team.heartbeats:
                raise ConfigurationError("no agent may work; create one: artoo agent new NAME")
            say(f"{', '.join(sorted(team.heartbeats))} at work")
            yield
        finally:
            team.stop()
            await asyncio.wait({running})
