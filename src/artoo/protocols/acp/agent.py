"""The methods that an editor calls by ACP, such as new session, prompt, cancel and load."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, cast

from acp.connection import StreamDirection, StreamEvent
from acp.exceptions import RequestError
from acp.helpers import update_agent_message_text, update_user_message_text
from acp.interfaces import Client
from acp.meta import PROTOCOL_VERSION
from acp.schema import (
    AgentCapabilities,
    Implementation,
    InitializeResponse,
    ListSessionsResponse,
    LoadSessionResponse,
    McpCapabilities,
    NewSessionResponse,
    PromptCapabilities,
    PromptResponse,
    SessionCapabilities,
    SessionInfo,
    SessionListCapabilities,
    SetSessionConfigOptionResponse,
    SetSessionModeResponse,
)

from artoo.contracts.envelope import Envelope
from artoo.contracts.errors import ArtooError, ConfigurationError
from artoo.contracts.recording import AskedBy
from artoo.contracts.request import Turn, UserRequest
from artoo.contracts.settling import ApplyMode
from artoo.contracts.solution import FinalResult, StoppedBy
from artoo.protocols.acp.asking import attend
from artoo.protocols.acp.commands import RESUME, Commands, command_in, offered
from artoo.protocols.acp.content import request_of
from artoo.protocols.acp.models import MODEL_OPTION, models_to_choose, option_of
from artoo.protocols.acp.modes import OFFERED, mode_of, modes_of, remember
from artoo.protocols.acp.open_sessions import (
    INTERNAL,
    INVALID_PARAMS,
    INVALID_REQUEST,
    LONGEST_NAME,
    NOT_FOUND,
    OpenSession,
    OpenSessions,
    PromptTurn,
    directory,
)
from artoo.protocols.acp.telling import Teller
from artoo.protocols.handed import HandedTask, Listener
from artoo.protocols.intake import Intake
from artoo.protocols.looking import Looking, id_of
from artoo.runtime.app.run_options import RunOptions
from artoo.runtime.task.conversations import find_session, latest_sessions, open_session
from artoo.runtime.task.task_header import own_version

MOST_LISTED = 100
"""Maximum number of sessions in one list."""
Begin = Callable[[Listener], Awaitable[HandedTask]]
"""Begins a task. The listener receives its messages."""


@dataclass(slots=True)
class EditorAgent:
    """The agent for one editor. The methods have the names and parameters that `acp.interfaces.Agent` defines. The
    library answers all others as unknown.
    """

    intake: Intake
    looking: Looking
    _client: Client | None = None
    _asked_by: AskedBy | None = None
    _open: OpenSessions = field(init=False)

    def __post_init__(self) -> None:
        self._open = OpenSessions(self.intake.config.apply)

    def on_connect(self, conn: Client) -> None:
        """Store the client at the other end of the connection."""
        self._client = conn

    async def initialize(
        self, protocol_version: int, client_info: Implementation | None = None, **_: Any
    ) -> InitializeResponse:
        """Return the names and versions of both sides. There is only one version of the protocol, which the client
        may accept or not."""
        if self._asked_by is not None:
            raise RequestError(INVALID_REQUEST, "initialize has come before")
        name, version = (client_info.name, client_info.version) if client_info is not None else ("", "")
        self._asked_by = AskedBy(protocol="acp", client=name[:LONGEST_NAME], version=version[:LONGEST_NAME])
        return InitializeResponse(
            protocol_version=PROTOCOL_VERSION,
            agent_capabilities=AgentCapabilities(
                load_session=True,
                prompt_capabilities=PromptCapabilities(),
                mcp_capabilities=McpCapabilities(http=True),
                session_capabilities=SessionCapabilities(list=SessionListCapabilities()),
            ),
            agent_info=Implementation(name="artoo", title="artoo", version=own_version()),
            auth_methods=[],
        )

    async def new_session(
        self, cwd: str, mcp_servers: Sequence[object] | None = None, **_: Any
    ) -> NewSessionResponse:
        """Open a conversation that works in `cwd`. It can be loaded again, even before its first prompt."""
        self._known()
        directory(cwd)
        opened = self._open.add(open_session(self._home), cwd, mcp_servers)
        await asyncio.to_thread(remember, self._home, opened.session.name, opened.apply)
        opened.models = await models_to_choose(self.intake.config, os.environ)
        return NewSessionResponse(
            session_id=opened.session.name,
            modes=modes_of(opened.apply),
            config_options=option_of(opened.models, opened.model),
        )

    async def told(self, event: StreamEvent) -> None:
        """Send the commands of a session when the editor knows the name of the session. The library calls this as
        an observer."""
        result = event.message.get("result") if event.direction is StreamDirection.OUTGOING else None
        session_id = cast("dict[str, object]", result).get("sessionId") if isinstance(result, dict) else None
        if isinstance(session_id, str) and session_id in self._open:
            await self._teller(session_id).say(offered())

    async def load_session(
        self, cwd: str, session_id: str, mcp_servers: Sequence[object] | None = None, **_: Any
    ) -> LoadSessionResponse:
        """Open a stored conversation again. All of its messages that are stored are sent first."""
        self._known()
        directory(cwd)
        with self._open.loading(session_id):
            mode = await asyncio.to_thread(mode_of, self._home, session_id)
            session = await asyncio.to_thread(find_session, self._home, session_id)
            # the session was opened but never prompted
            if session is None and mode is not None:
                session = open_session(self._home, name=session_id)
            if session is None:
                raise RequestError(NOT_FOUND, f"there is no session {session_id[:LONGEST_NAME]!r}")
            opened = self._open.add(session, cwd, mcp_servers, mode or ApplyMode.ASK)
            teller = self._teller(session_id)
            for turn in session.exchanges:
                await teller.say(update_user_message_text(turn.input))
                await teller.say(update_agent_message_text(await asyncio.to_thread(self._answered, turn)))
            await teller.say(offered())
            opened.models = await models_to_choose(self.intake.config, os.environ)
        return LoadSessionResponse(
            modes=modes_of(opened.apply), config_options=option_of(opened.models, opened.model)
        )

    async def list_sessions(self, cwd: str | None = None, **_: Any) -> ListSessionsResponse:
        """List the conversations of this home or of one directory, latest first."""
        self._known()
        project = str(directory(cwd)) if cwd is not None else None
        found = await asyncio.to_thread(latest_sessions, self._home, MOST_LISTED)
        return ListSessionsResponse(
            sessions=[
                SessionInfo(
                    session_id=one.name,
                    cwd=one.project,
                    title=self.looking.clean.text(one.exchanges[0].input)[:LONGEST_NAME],
                )
                for one in found
                if one.exchanges and one.project and project in (None, one.project)
            ]
        )

    async def set_session_mode(self, session_id: str, mode_id: str, **_: Any) -> SetSessionModeResponse:
        """Set the mode, which decides which changes are applied without approval from the next prompt on."""
        self._known()
        found = self._open.find(session_id)
        try:
            found.apply = next(mode for mode in OFFERED if mode == mode_id)
        except StopIteration as error:
            known = ", ".join(sorted(OFFERED))
            raise RequestError(INVALID_PARAMS, f"there is no mode {mode_id[:100]!r}; there are {known}") from error
        await asyncio.to_thread(remember, self._home, session_id, found.apply)
        return SetSessionModeResponse()

    async def set_config_option(
        self, config_id: str, session_id: str, value: str | bool, **_: Any
    ) -> SetSessionConfigOptionResponse:
        """Set the model of a session from its next prompt on."""
        self._known()
        found = self._open.find(session_id)
        if config_id != MODEL_OPTION or value not in found.models:
            known = ", ".join(found.models) or "no model to choose"
            raise RequestError(INVALID_PARAMS, f"{config_id[:100]}={value!r:.100} is not an option; {known}")
        found.model = str(value)
        return SetSessionConfigOptionResponse(config_options=option_of(found.models, found.model) or [])

    async def prompt(self, prompt: Sequence[object], session_id: str, **_: Any) -> PromptResponse:
        """Run a request to its end. The answer is sent as a message of the session. If the session is answering a
        prompt already, steer the running task instead."""
        self._known()
        steered = self._steered(session_id, prompt)
        if steered is not None:
            return steered
        found, turn = self._open.begin(session_id)
        try:
            return await self._answer(found, turn, request_of(prompt))
        except ConfigurationError as error:
            raise RequestError(INVALID_PARAMS, self.looking.clean.text(str(error))) from error
        except ArtooError as error:
            raise RequestError(INTERNAL, self.looking.clean.text(str(error))) from error
        finally:
            found.turn = None

    def _steered(self, session_id: str, prompt: Sequence[object]) -> PromptResponse | None:
        """Send a prompt to the task that is running in the session. Return None if no task is running."""
        turn = self._open.find(session_id).turn
        if turn is None or turn.task is None or turn.task.ended:
            return None
        try:
            self.intake.send(turn.task, request_of(prompt), "acp")
        except ConfigurationError as error:
            raise RequestError(INVALID_PARAMS, self.looking.clean.text(str(error))) from error
        return PromptResponse(stop_reason="end_turn", field_meta={"artoo": {"steered": turn.task.task_id}})

    async def cancel(self, session_id: str, **_: Any) -> None:
        """Cancel the prompt of a session, which is then answered as cancelled. The work of the task is kept."""
        turn = self._open.find(session_id).turn if session_id in self._open else None
        if turn is not None:
            turn.cancelled = True
            if turn.task is not None:
                self.intake.interrupt(turn.task)

    async def _answer(self, found: OpenSession, turn: PromptTurn, request: str) -> PromptResponse:
        """Run a slash command or a request."""
        command, asked_by = command_in(request), self._known()
        if command is None:
            return await self._run(found, turn, partial(self._begun, found, request))
        name, given = command
        if name == RESUME:
            return await self._run(found, turn, partial(self._resumed, found, id_of(given) if given else None))
        tasks = frozenset(one.task_id for one in found.session.exchanges if one.task_id)
        commands = Commands(self.intake, self.looking, asked_by, tasks)
        await commands.run(name, given, self._teller(found.session.name))
        return PromptResponse(stop_reason="cancelled" if turn.cancelled else "end_turn")

    async def _run(self, found: OpenSession, turn: PromptTurn, begin: Begin) -> PromptResponse:
        session, teller = found.session, self._teller(found.session.name)

        request, project = "", ""

        async def heard(envelope: Envelope) -> None:
            nonlocal request, project
            if isinstance(envelope.payload, UserRequest):
                request, project = envelope.payload.text, envelope.payload.project
            # This is recorded even if the editor has disconnected, because it may load the session later.
            if isinstance(envelope.payload, FinalResult):
                await asyncio.to_thread(session.add_result, request, envelope.payload, project)
            await teller.hear(envelope)

        turn.task = task = await begin(heard)
        if turn.cancelled:
            self.intake.interrupt(task)
        try:
            await attend(task, teller)
        except asyncio.CancelledError:
            # The editor has cancelled the request or disconnected.
            self.intake.interrupt(task)
            raise
        if task.error is not None:
            raise task.error
        return _response(task, cancelled=turn.cancelled)

    async def _begun(self, found: OpenSession, request: str, heard: Listener) -> HandedTask:
        return await self.intake.begin(
            request,
            RunOptions(project=found.project, apply=found.apply, model=found.model),
            self._known(),
            asks=True,
            history=found.session.turns,
            listener=heard,
            servers=found.servers,
        )

    async def _resumed(self, found: OpenSession, task_id: str | None, heard: Listener) -> HandedTask:
        return await self.intake.resume(task_id, self._known(), asks=True, listener=heard, servers=found.servers)

    def _answered(self, turn: Turn) -> str:
        """Return the whole answer of a turn. If the log of the task no longer exists, return the stored summary."""
        try:
            whole = self.looking.ended(turn.task_id).answer if turn.task_id else ""
        except ArtooError:
            whole = ""
        return whole or self.looking.clean.text(turn.summary)

    def _known(self) -> AskedBy:
        if self._asked_by is None:
            raise RequestError(INVALID_REQUEST, "initialize comes first")
        return self._asked_by

    def _teller(self, session_id: str) -> Teller:
        if self._client is None:
            raise RequestError(INTERNAL, "no client is connected")
        return Teller(self._client, session_id, self.looking.clean)

    @property
    def _home(self) -> Path:
        return self.intake.config.home


def _response(task: HandedTask, *, cancelled: bool) -> PromptResponse:
    """Build the answer to a prompt. If the prompt was cancelled, the answer says so even if the task has a
    result."""
    result = task.result
    stopped = result.stopped_by if result is not None else None
    told = {"artoo": {"task": task.task_id}}
    match StoppedBy.INTERRUPTED if cancelled else stopped:
        case StoppedBy.INTERRUPTED:
            return PromptResponse(stop_reason="cancelled", field_meta=told)
        case StoppedBy.TOKENS:
            return PromptResponse(stop_reason="max_tokens", field_meta=told)
        case StoppedBy.CALLS:
            return PromptResponse(stop_reason="max_turn_requests", field_meta=told)
        case _:
            return PromptResponse(stop_reason="end_turn", field_meta=told)
