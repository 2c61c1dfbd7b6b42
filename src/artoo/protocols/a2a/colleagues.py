"""Letters to foreign agents: each becomes a message there, and what they answer a letter back.

    agent ─ letter to a2a:NAME ─► inbox of a2a:NAME ─ taken here ─► SendMessage ─► … ─ answer ─► letter

A letter is one message, named after it, however often this process dies: what the other side calls its task is
kept, and asked for again. Secrets are taken out of what leaves.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from a2a.client import A2ACardResolver, A2AClientError, Client, ClientConfig, ClientFactory
from a2a.types import (
    AgentCard,
    GetTaskRequest,
    Message,
    Part,
    Role,
    SendMessageConfiguration,
    SendMessageRequest,
    Task,
    TaskState,
)
from a2a.utils.constants import TransportProtocol
from a2a.utils.errors import A2AError
from a2a.utils.signing import SignatureVerificationError, create_signature_verifier
from jwt import PyJWK, PyJWKSet
from jwt.exceptions import PyJWKSetError, PyJWTError

from artoo.agents.mail.rows import LONGEST_MAIL, MailClaim
from artoo.contracts.agents import FOREIGN, Mail
from artoo.contracts.errors import ArtooError, ClaimLost, ForeignRefused, MailRefused
from artoo.protocols.a2a.asked import MODES
from artoo.protocols.a2a.following import LOOK_SECONDS, Following, again
from artoo.protocols.a2a.outward import goal_of, outward, permits_of
from artoo.runtime.config.foreign_agents import Peer
from artoo.team.holding import held

logger = logging.getLogger(__name__)

AT_ONCE = 4
"""Letters that are with one foreign agent at the same time."""
POLL_SECONDS = (1.0, 30.0)
"""How often its task is looked at: at first, and in the end."""
PATIENCE_SECONDS = 24 * 3_600.0
TRIES = 5
"""How often in a row a foreign agent is tried that cannot be reached, or refuses, before it has the letter."""
TRIES_AFTERWARDS = 120
"""The same of one that has the letter and is away: about an hour. It may come back with the answer."""
RELEASE_SECONDS = 5.0
"""How long a letter that is given back at the end may take; then its lease runs out instead."""
NO_TEXT = "[artoo: it answered, with no text]"

_OVER = frozenset(
    {
        TaskState.TASK_STATE_COMPLETED,
        TaskState.TASK_STATE_FAILED,
        TaskState.TASK_STATE_CANCELED,
        TaskState.TASK_STATE_REJECTED,
        TaskState.TASK_STATE_INPUT_REQUIRED,
    }
)


@dataclass(frozen=True, slots=True)
class Colleague:
    """One foreign agent that can be written to. `name` without the protocol; `environ` has its token."""

    name: str
    peer: Peer
    following: Following
    environ: Callable[[str], str | None] = os.environ.get

    async def run(self) -> None:
        """Carries letters, until it is cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(AT_ONCE):
                group.create_task(again(self._carry))

    async def _carry(self) -> None:
        office = self.following.office
        async with office.wake.watching() as following:
            while True:
                claim = await office.mailbox.take(FOREIGN + self.name)
                if claim is None:
                    await following(LOOK_SECONDS)
                    continue
                try:
                    await self._answered(claim)
                except ClaimLost:
                    continue
                except asyncio.CancelledError:
                    with suppress(TimeoutError):
                        await asyncio.wait_for(asyncio.shield(office.mailbox.release(claim)), RELEASE_SECONDS)
                    raise

    async def _answered(self, claim: MailClaim) -> None:
        mailbox, clock = self.following.office.mailbox, self.following.office.clock
        try:
            text = await held(self._delivered(claim.mail), lambda: mailbox.renew(claim), clock)
        except ForeignRefused as error:
            text = f"[artoo: the letter was not answered: {self.following.clean.text(str(error)[:500])}]"
        try:
            await mailbox.answer(claim, text.strip()[:LONGEST_MAIL] or NO_TEXT, f"answered by {self.name}")
        except MailRefused as error:
            await mailbox.archive(claim, f"done, but not answered: {error}")

    async def _delivered(self, mail: Mail) -> str:
        """What the foreign agent answers. Raises ForeignRefused when it cannot be reached, or is too slow.

        What artoo itself refuses (a card, a token, a key) is not tried again: it would be the same.
        """
        clock, post = self.following.office.clock, self.following.office.foreign_post
        until, misses = clock.monotonic() + PATIENCE_SECONDS, 0

        def reached() -> None:
            nonlocal misses
            misses = 0

        while True:
            try:
                async with self._client() as client:
                    return await self._asked(client, mail, until, reached)
            except ArtooError:
                raise
            except Exception as error:  # noqa: BLE001 - the SDK stumbles in many ways over what a stranger answers
                problem = self.following.clean.text(f"{type(error).__name__}: {error}"[:500])
                refused = isinstance(error, A2AError) and not isinstance(error, A2AClientError)
            logger.info("%s: letter %s: %s", self.name, mail.id, problem)
            misses += 1
            if misses >= (TRIES if refused or not await post.task_of(mail.id) else TRIES_AFTERWARDS):
                raise ForeignRefused(f"no answer came from {self.name}: {problem}")
            await clock.sleep(min(2.0 ** (misses - 1), POLL_SECONDS[1]))

    async def _asked(self, client: Client, mail: Mail, until: float, reached: Callable[[], None]) -> str:
        """Sends the letter unless it is there, and waits for the answer; `reached` hears of each sign of life."""
        post, clock, pause = self.following.office.foreign_post, self.following.office.clock, POLL_SECONDS[0]
        task_id = await post.task_of(mail.id)
        if not task_id:
            found = await self._sent(client, mail)
            if isinstance(found, Message):
                return _text(found)
            task_id = found.id
            await post.sent(mail.id, task_id)
        while clock.monotonic() < until:
            task = await client.get_task(GetTaskRequest(id=task_id))
            reached()
            if task.status.state in _OVER:
                return _told(task)
            await clock.sleep(pause)
            pause = min(pause * 1.5, POLL_SECONDS[1])
        raise ForeignRefused(f"{self.name} has not ended within {PATIENCE_SECONDS / 3_600:g} hours")

    async def _sent(self, client: Client, mail: Mail) -> Task | Message:
        text = self.following.clean.text(mail.text)
        message = Message(message_id=mail.id, role=Role.ROLE_USER, parts=[Part(text=text)])
        configuration = SendMessageConfiguration(return_immediately=True, accepted_output_modes=MODES)
        request = SendMessageRequest(message=message, configuration=configuration)
        async for answer in client.send_message(request):
            if answer.HasField("message"):
                return answer.message
            if answer.HasField("task") and answer.task.id:
                return answer.task
        raise ForeignRefused(f"{self.name} answered with neither a task nor a message")

    @asynccontextmanager
    async def _client(self) -> AsyncGenerator[Client]:
        """Raises ForeignRefused when its card is not believed, and whatever the SDK does when it cannot be read."""
        url = self.peer.url or ""
        permits = permits_of(self.following.office.config.allow, [url])
        async with outward(permits) as http:
            if self.peer.token_env:
                token = self.environ(self.peer.token_env)
                if not token:
                    raise ForeignRefused(f"the variable {self.peer.token_env}, which has its token, is not set")
                http.headers["Authorization"] = f"Bearer {token}"
            card = await A2ACardResolver(http, url).get_agent_card()
            self._check(card)
            if self.peer.keys:
                await asyncio.to_thread(check_signature, card, self.name, self.peer.keys)
            config = ClientConfig(
                streaming=False,
                polling=True,
                httpx_client=http,
                supported_protocol_bindings=[TransportProtocol.JSONRPC, TransportProtocol.HTTP_JSON],
            )
            yield ClientFactory(config).create(card)

    def _check(self, card: AgentCard) -> None:
        """The token goes nowhere but where the operator said. Raises ForeignRefused."""
        own = goal_of(self.peer.url or "")
        for interface in card.supported_interfaces:
            if interface.protocol_binding in ("JSONRPC", "HTTP+JSON") and goal_of(interface.url) != own:
                raise ForeignRefused(f"the card of {self.name} leads to another host: {goal_of(interface.url)}")


async def carry_letters(following: Following) -> None:
    """Carries the letters of all colleagues, until it is cancelled."""
    peers = following.office.config.a2a.peers
    async with asyncio.TaskGroup() as group:
        for name in following.office.config.a2a.colleagues:
            group.create_task(Colleague(name, peers[name], following).run())


def _told(task: Task) -> str:
    """The answer in words, with how it ended where that is not well."""
    made = [part.text for artifact in task.artifacts for part in artifact.parts if part.text]
    said = _text(task.status.message)
    if task.status.state == TaskState.TASK_STATE_COMPLETED:
        return "\n\n".join(made) or said or "[artoo: it says that it is done, and nothing else]"
    ending = TaskState.Name(task.status.state).removeprefix("TASK_STATE_").lower().replace("_", " ")
    return "\n\n".join([f"[artoo: {ending}]", *(part for part in (said, *made) if part)])


def _text(message: Message) -> str:
    return "\n\n".join(part.text for part in message.parts if part.text)


ALGORITHMS = ("ES256", "ES384", "ES512", "EdDSA", "RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
"""Of public keys only: with a shared secret a public key would be one."""
_LARGEST = 1 << 20
_PEM = "-----BEGIN PUBLIC KEY-----"

Find = Callable[[str | None, str | None], PyJWK | str]


def check_signature(card: AgentCard, name: str, keys: str) -> None:
    """Raises ForeignRefused unless the card is signed with one of the keys in this file, a JWK set or a PEM."""
    try:
        find = _finding(Path(keys).expanduser())
    except (OSError, ValueError, PyJWTError) as error:
        raise ForeignRefused(f"the keys of {name} in {keys} cannot be read: {error}") from error
    try:
        create_signature_verifier(find, list(ALGORITHMS))(card)
    except SignatureVerificationError as error:
        raise ForeignRefused(f"the card of {name} is not signed with a key of {keys}: {error}") from error


def _finding(file: Path) -> Find:
    """What gives the key of a signature, by its name. Raises OSError, ValueError, PyJWTError."""
    if file.stat().st_size > _LARGEST:
        raise ValueError(f"it is larger than {_LARGEST:,} bytes")
    text = file.read_text(encoding="utf-8")
    if text.lstrip().startswith(_PEM):
        return lambda _kid, _jku: text
    known = PyJWKSet.from_dict(json.loads(text)).keys

    def found(kid: str | None, _jku: str | None) -> PyJWK:
        for key in known:
            if key.key_id == kid or (len(known) == 1 and key.key_id is None):
                return key
        raise PyJWKSetError(f"there is no key {kid!r}")

    return found
