"""What an editor may ask of artoo: a session, a prompt in it, its end, and an earlier session again."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from acp.exceptions import RequestError
from acp.helpers import update_agent_message_text, update_user_message_text
from acp.interfaces import Client
from acp.meta import PROTOCOL_VERSION
from acp.schema import (
    AgentCapabilities,
    Implementation,
    InitializeResponse,
    LoadSessionResponse,
    NewSessionResponse,
    PromptCapabilities,
    PromptResponse,
)

from artoo.contracts.envelope import Envelope
from artoo.contracts.errors import ArtooError, ConfigurationError
from artoo.contracts.recording import AskedBy
from artoo.contracts.request import Turn
from artoo.contracts.solution import FinalResult, StoppedBy
from artoo.protocols.acp.asking import attend
from artoo.protocols.acp.content import request_of
from artoo.protocols.acp.telling import Teller
from artoo.protocols.handed import HandedTask
from artoo.protocols.intake import Intake
from artoo.protocols.looking import Looking
from artoo.runtime.opening import own_version
from artoo.runtime.options import RunOptions
from artoo.runtime.sessions import Session, find_session, open_session

MOST_SESSIONS = 64
"""Sessions of one editor that are kept open; the one that was idle longest is closed, and can be loaded again."""
_LONGEST_NAME = 100
_INVALID_REQUEST, _INVALID_PARAMS, _INTERNAL, _NOT_FOUND = -32_600, -32_602, -32_603, -32_002

_NO_SERVERS = (
    "The MCP servers that this editor passes along are not used: `artoo mcp add` gives artoo servers of its own."
)


@dataclass(slots=True)
class PromptTurn:
    """A prompt that is being answered. `task` is None until it has begun."""

    task: HandedTask | None = None
    cancelled: bool = False


@dataclass(slots=True)
class OpenSession:
    """A conversation of an editor's. `passed_servers`: MCP servers came with it, which nobody has been told yet."""

    session: Session
    project: Path
    passed_servers: bool = False
    turn: PromptTurn | None = None


@dataclass(slots=True)
class EditorAgent:
    """One editor's agent. Methods are named and called as `acp.interfaces.Agent` says; those that are not here are
    answered as unknown by the library.
    """

    intake: Intake
    looking: Looking
    _client: Client | None = None
    _asked_by: AskedBy | None = None
    _open: OrderedDict[str, OpenSession] = field(default_factory=OrderedDict[str, OpenSession])

    def on_connect(self, conn: Client) -> None:
        """Who is at the other end."""
        self._client = conn

    async def initialize(
        self, protocol_version: int, client_info: Implementation | None = None, **_: Any
    ) -> InitializeResponse:
        """Names both sides; there is one version, which the client may take or leave."""
        if self._asked_by is not None:
            raise RequestError(_INVALID_REQUEST, "initialize has come before")
        name, version = (client_info.name, client_info.version) if client_info is not None else ("", "")
        self._asked_by = AskedBy(protocol="acp", client=name[:_LONGEST_NAME], version=version[:_LONGEST_NAME])
        return InitializeResponse(
            protocol_version=PROTOCOL_VERSION,
            agent_capabilities=AgentCapabilities(load_session=True, prompt_capabilities=PromptCapabilities()),
            agent_info=Implementation(name="artoo", title="artoo", version=own_version()),
            auth_methods=[],
        )

    async def new_session(
        self, cwd: str, mcp_servers: Sequence[object] | None = None, **_: Any
    ) -> NewSessionResponse:
        """A conversation that works in `cwd`; on disk from its first exchange on."""
        self._known()
        session = open_session(self._home)
        self._keep(OpenSession(session, _directory(cwd), bool(mcp_servers)))
        return NewSessionResponse(session_id=session.name)

    async def load_session(
        self, cwd: str, session_id: str, mcp_servers: Sequence[object] | None = None, **_: Any
    ) -> LoadSessionResponse:
        """Takes a conversation up again: all that is kept of it is told first."""
        self._known()
        project, known = _directory(cwd), self._open.get(session_id)
        if known is not None and known.turn is not None:
            raise RequestError(_INVALID_REQUEST, f"session {session_id} answers a prompt now")
        session = await asyncio.to_thread(find_session, self._home, session_id)
        if session is None:
            raise RequestError(
                _NOT_FOUND, f"there is no session {session_id[:_LONGEST_NAME]!r} with an exchange in it"
            )
        self._keep(OpenSession(session, project, bool(mcp_servers)))
        teller = self._teller(session_id)
        for turn in session.exchanges:
            await teller.say(update_user_message_text(turn.input))
            await teller.say(update_agent_message_text(await asyncio.to_thread(self._answered, turn)))
        return LoadSessionResponse()

    async def prompt(self, prompt: Sequence[object], session_id: str, **_: Any) -> PromptResponse:
        """Runs a request to its end; the answer comes as a message of the session."""
        self._known()
        found = self._open.get(session_id)
        if found is None:
            raise RequestError(_NOT_FOUND, f"there is no open session {session_id[:_LONGEST_NAME]!r}")
        if found.turn is not None:
            raise RequestError(_INVALID_REQUEST, f"session {session_id} answers a prompt now; cancel it first")
        self._open.move_to_end(session_id)
        found.turn = turn = PromptTurn()
        try:
            return await self._run(found, turn, request_of(prompt))
        except ConfigurationError as error:
            raise RequestError(_INVALID_PARAMS, self.looking.clean.text(str(error))) from error
        except ArtooError as error:
            raise RequestError(_INTERNAL, self.looking.clean.text(str(error))) from error
        finally:
            found.turn = None

    async def cancel(self, session_id: str, **_: Any) -> None:
        """Ends the prompt of a session; its answer says so. What it did is kept."""
        found = self._open.get(session_id)
        if found is not None and found.turn is not None:
            found.turn.cancelled = True
            if found.turn.task is not None:
                self.intake.interrupt(found.turn.task)

    async def _run(self, found: OpenSession, turn: PromptTurn, request: str) -> PromptResponse:
        session, teller = found.session, self._teller(found.session.name)
        if found.passed_servers:
            found.passed_servers = False
            await teller.say(update_agent_message_text(_NO_SERVERS))

        async def heard(envelope: Envelope) -> None:
            if isinstance(envelope.payload, FinalResult):  # also when the editor is gone: it may load the session
                result = envelope.payload
                await asyncio.to_thread(session.add, request, result.summary, result.task_id)
            await teller.hear(envelope)

        options, asked_by = RunOptions(project=found.project), self._known()
        task = await self.intake.begin(request, options, asked_by, asks=True, history=session.turns, listener=heard)
        turn.task = task
        if turn.cancelled:
            self.intake.interrupt(task)
        try:
            await attend(task, teller)
        except asyncio.CancelledError:  # the editor withdrew the request, or is gone
            self.intake.interrupt(task)
            raise
        if task.error is not None:
            raise task.error
        return _response(task)

    def _answered(self, turn: Turn) -> str:
        """What was answered, whole where the task's log is still there."""
        try:
            whole = self.looking.ended(turn.task_id).answer if turn.task_id else ""
        except ArtooError:
            whole = ""
        return whole or self.looking.clean.text(turn.summary)

    def _keep(self, opened: OpenSession) -> None:
        self._open[opened.session.name] = opened
        self._open.move_to_end(opened.session.name)
        idle = [name for name, one in self._open.items() if one.turn is None]
        for name in idle[: max(0, len(self._open) - MOST_SESSIONS)]:
            del self._open[name]

    def _known(self) -> AskedBy:
        if self._asked_by is None:
            raise RequestError(_INVALID_REQUEST, "initialize comes first")
        return self._asked_by

    def _teller(self, session_id: str) -> Teller:
        if self._client is None:
            raise RequestError(_INTERNAL, "nobody is connected")
        return Teller(self._client, session_id, self.looking.clean)

    @property
    def _home(self) -> Path:
        return self.intake.config.home


def _directory(cwd: str) -> Path:
    path = Path(cwd)
    if not path.is_absolute() or not path.is_dir():
        raise RequestError(_INVALID_PARAMS, f"cwd {cwd[:1_000]!r} is not the absolute path of a directory")
    return path


def _response(task: HandedTask) -> PromptResponse:
    result = task.result
    stopped = result.stopped_by if result is not None else None
    told = {"artoo": {"task": task.task_id}}
    match stopped:
        case StoppedBy.INTERRUPTED:
            return PromptResponse(stop_reason="cancelled", field_meta=told)
        case StoppedBy.TOKENS:
            return PromptResponse(stop_reason="max_tokens", field_meta=told)
        case StoppedBy.CALLS:
            return PromptResponse(stop_reason="max_turn_requests", field_meta=told)
        case _:
            return PromptResponse(stop_reason="end_turn", field_meta=told)
