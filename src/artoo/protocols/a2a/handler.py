"""Handle A2A requests to send, get, list, cancel and subscribe, with the limit on followers.

It serves JSON-RPC and REST, and implements the SDK's `RequestHandler`.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from a2a.server.context import ServerCallContext
from a2a.server.request_handlers.request_handler import RequestHandler
from a2a.types import (
    AgentCard,
    CancelTaskRequest,
    DeleteTaskPushNotificationConfigRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    ListTaskPushNotificationConfigsRequest,
    ListTaskPushNotificationConfigsResponse,
    ListTasksRequest,
    ListTasksResponse,
    SendMessageRequest,
    SubscribeToTaskRequest,
    Task,
    TaskPushNotificationConfig,
)
from a2a.utils.errors import (
    InternalError,
    InvalidParamsError,
    TaskNotCancelableError,
    TaskNotFoundError,
    UnsupportedOperationError,
)
from a2a.utils.proto_utils import validate_proto_required_fields
from google.protobuf.message import Message as ProtobufMessage

from artoo.agents.foreign.foreign_tasks import ForeignRequest, ForeignTask
from artoo.agents.foreign.settings import Peer
from artoo.contracts.errors import ActivityStoreError, ForeignRefused, QuotaSpent
from artoo.protocols.a2a.asked import asked_in, page_of
from artoo.protocols.a2a.following import Following
from artoo.protocols.a2a.push import Pushes
from artoo.protocols.a2a.states import Update, refused_task, task_of

T = TypeVar("T")

MOST_FOLLOWED = 100
"""Maximum number of requests of one foreign agent that wait or are streamed at the same time."""
BOOKS_SECONDS = 20.0
"""Number of seconds that a request waits for a database that cannot be reached. The work of the team waits without
a limit."""
GONE = "artoo.gone"
"""The key, in the state of a call, of the function that waits until the client has disconnected."""


@dataclass(slots=True)
class BoardAgent(RequestHandler):
    """Handles the requests to one agent. If `agent` is empty, this is the team. `peers`: the policies for foreign
    agents, by their names."""

    agent: str
    peers: dict[str, Peer]
    following: Following
    pushes: Pushes
    _followed: Counter[str] = field(default_factory=Counter[str])

    async def on_message_send(self, params: SendMessageRequest, context: ServerCallContext) -> Task:
        """Start a task. Return it when it rests, or at once if the client wants that."""
        peer = self._peer(params, context)
        try:
            seen = await self._begun(peer, params)
        except QuotaSpent as error:
            return refused_task(params.message, str(error))
        if not params.configuration.return_immediately:
            with self._place(peer):
                settled = self.following.settled(seen, self._look(peer, seen.task.id))
                seen = await _while_there(settled, context) or seen
        return await self._told(seen, _history(params.configuration))

    async def on_message_send_stream(
        self, params: SendMessageRequest, context: ServerCallContext
    ) -> AsyncGenerator[Task | Update]:
        """Start a task, and stream it until it rests."""
        peer = self._peer(params, context)
        with self._place(peer):
            try:
                seen = await self._begun(peer, params)
            except QuotaSpent as error:
                yield refused_task(params.message, str(error))
                return
            yield await self._told(seen, _history(params.configuration))
            async for update in self.following.events(seen, self._look(peer, seen.task.id)):
                yield update

    async def on_subscribe_to_task(
        self, params: SubscribeToTaskRequest, context: ServerCallContext
    ) -> AsyncGenerator[Task | Update]:
        """Stream the present state of a task, and then its updates until it rests."""
        peer = self._peer(params, context)
        seen = await self._own(peer, params.id)
        # the protocol does not allow to subscribe to a task that has ended
        if seen.ended is not None:
            raise UnsupportedOperationError("the task is over; nothing more happens to it")
        with self._place(peer):
            yield await self._told(seen, None)
            async for update in self.following.events(seen, self._look(peer, params.id)):
                yield update

    async def on_get_task(self, params: GetTaskRequest, context: ServerCallContext) -> Task:
        """Return a task in its present state."""
        return await self._told(await self._own(self._peer(params, context), params.id), _history(params))

    async def on_list_tasks(self, params: ListTasksRequest, context: ServerCallContext) -> ListTasksResponse:
        """List the tasks that the caller gave to this agent. The task that changed last comes first."""
        peer, history = self._peer(params, context), _history(params)
        found = await _said(
            self.following.office.foreign.list(peer, self.agent, context=params.context_id), InvalidParamsError
        )
        tasks = [task_of(seen, await self.following.result(seen), history) for seen in found]
        return page_of(tasks, params)

    async def on_cancel_task(self, params: CancelTaskRequest, context: ServerCallContext) -> Task:
        """Cancel a task of the calling agent through the board. None of the task's changes is applied."""
        peer = self._peer(params, context)
        await self._own(peer, params.id)
        cancelling = self.following.office.foreign.cancel(peer, self.agent, params.id)
        cancelled = await _said(cancelling, TaskNotCancelableError)
        if cancelled is None:
            raise TaskNotFoundError
        return await self._told(cancelled, None)

    async def on_create_task_push_notification_config(
        self, params: TaskPushNotificationConfig, context: ServerCallContext
    ) -> TaskPushNotificationConfig:
        """Add a target for push notifications about the task."""
        seen = await self._own(self._peer(params, context), params.task_id)
        await _said(self.pushes.check(params), InvalidParamsError)
        return await _said(self.pushes.keep(params, seen), UnsupportedOperationError)

    async def on_get_task_push_notification_config(
        self, params: GetTaskPushNotificationConfigRequest, context: ServerCallContext
    ) -> TaskPushNotificationConfig:
        """Return one push target of a task."""
        await self._own(self._peer(params, context), params.task_id)
        for target in await _said(self.pushes.of(params.task_id), InternalError):
            if target.id == params.id:
                return target
        raise TaskNotFoundError("the task has no target of this id")

    async def on_list_task_push_notification_configs(
        self, params: ListTaskPushNotificationConfigsRequest, context: ServerCallContext
    ) -> ListTaskPushNotificationConfigsResponse:
        """Return all push targets of a task. There are no pages, because a task has only few targets."""
        await self._own(self._peer(params, context), params.task_id)
        configs = await _said(self.pushes.of(params.task_id), InternalError)
        return ListTaskPushNotificationConfigsResponse(configs=configs)

    async def on_delete_task_push_notification_config(
        self, params: DeleteTaskPushNotificationConfigRequest, context: ServerCallContext
    ) -> None:
        """Remove a push target. It is no error if the target does not exist."""
        await self._own(self._peer(params, context), params.task_id)
        await _said(self.pushes.forget(params.task_id, params.id), InternalError)

    async def on_get_extended_agent_card(self, params: object, context: ServerCallContext) -> AgentCard:
        """Refuse the request. There is no extended card, and the card says so."""
        raise UnsupportedOperationError("there is no extended card")

    async def _begun(self, peer: str, params: SendMessageRequest) -> ForeignTask:
        """Return the task that belongs to the message. It is a new task, or a task of the caller with the given id
        or for the same message."""
        asked = asked_in(params, self.agent)
        _history(params.configuration)
        wanted = params.configuration.task_push_notification_config
        if wanted.url:
            await _said(self.pushes.check(wanted), InvalidParamsError)
        limits = self.peers[peer]
        if params.message.task_id:
            seen = await self._more(peer, params.message.task_id, asked, limits)
        else:
            accepting = self.following.office.foreign.accept(peer, asked, limits)
            seen, _ = await _said(accepting, UnsupportedOperationError)
        if wanted.url:
            await _said(self.pushes.keep(wanted, seen), UnsupportedOperationError)
        return seen

    async def _more(self, peer: str, task_id: str, asked: ForeignRequest, limits: Peer) -> ForeignTask:
        """Add a message to an existing task."""
        seen = await self._own(peer, task_id)
        if asked.context not in ("", seen.context):
            raise InvalidParamsError("the task belongs to another contextId")
        asking = self.following.office.foreign.more(peer, task_id, asked, limits)
        try:
            more = await _said(asking, UnsupportedOperationError)
        except QuotaSpent as error:
            raise InternalError(f"{error}") from error
        if more is None:
            raise TaskNotFoundError
        return more

    async def _own(self, peer: str, task_id: str) -> ForeignTask:
        seen = await _said(self.following.office.foreign.get(peer, self.agent, task_id), TaskNotFoundError)
        if seen is None:
            raise TaskNotFoundError
        return seen

    def _look(self, peer: str, task_id: str) -> Callable[[], Awaitable[ForeignTask | None]]:
        return lambda: self.following.office.foreign.get(peer, self.agent, task_id)

    async def _told(self, seen: ForeignTask, history: int | None) -> Task:
        return task_of(seen, await self.following.result(seen), history)

    def _peer(self, params: ProtobufMessage, context: ServerCallContext) -> str:
        """Return the name of the caller. Raises A2AError if a field is missing, or if the policy does not permit
        this agent to the caller."""
        validate_proto_required_fields(params)
        name = context.user.user_name
        policy = self.peers.get(name)
        if policy is None:
            raise UnsupportedOperationError("the operator's policy does not know you")
        if policy.agents and self.agent not in policy.agents:
            raise UnsupportedOperationError(f"you may ask {', '.join(policy.agents)}, and no other agent here")
        return name

    @contextmanager
    def _place(self, peer: str) -> Generator[None]:
        """Count one request that waits or is streamed, while the block runs. Raises A2AError if there are more than
        `MOST_FOLLOWED`."""
        if self._followed[peer] >= MOST_FOLLOWED:
            raise InternalError(f"{MOST_FOLLOWED} requests wait here already; ask for the task later")
        self._followed[peer] += 1
        try:
            yield
        finally:
            self._followed[peer] -= 1


async def _while_there(waiting: Coroutine[Any, Any, T], context: ServerCallContext) -> T | None:
    """Wait for a task as long as the client is connected. Returns None if the client disconnects first."""
    found, gone = asyncio.ensure_future(waiting), asyncio.ensure_future(context.state[GONE]())
    try:
        await asyncio.wait({found, gone}, return_when=asyncio.FIRST_COMPLETED)
        return await _said(found, InternalError) if found.done() else None
    finally:
        for one in (found, gone):
            one.cancel()
        await asyncio.wait({found, gone})


def _history(wanted: Any) -> int | None:
    """Return the number of messages that the client wants. Return None if it wants all. Raises
    InvalidParamsError."""
    if not wanted.HasField("history_length"):
        return None
    length = int(wanted.history_length)
    if length < 0:
        raise InvalidParamsError("historyLength is not negative")
    return length


async def _said(doing: Awaitable[T], refused: type[Exception]) -> T:
    """Await an operation on the board. Convert artoo's errors to errors of the protocol."""
    try:
        async with asyncio.timeout(BOOKS_SECONDS):
            return await doing
    except QuotaSpent:
        raise
    except ForeignRefused as error:
        raise refused(str(error)) from error
    except (ActivityStoreError, TimeoutError) as error:
        raise InternalError("the board cannot be used now; try again later") from error
