"""Submit the patrol items that are due as requests, without a model call, with the least time between two checks.

Whether an item is due is decided by code, not by a model.

Before an item is submitted, it is durably marked as open, with a key. Afterwards it is marked as closed. If the
process dies in between, the item is submitted again with the same key, by which the receiver recognises the
repetition.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from artoo.agents.heartbeat.duties import Done
from artoo.agents.patrol.conditions import NOTED_FIRST, FilesChanged, FilesThere, Looking, mark_of
from artoo.agents.patrol.parser import (
    PRINTED,
    PatrolItem,
    PatrolText,
    Problem,
    RunScript,
    is_script,
    printed_by,
    read_patrol,
)
from artoo.agents.patrol.store import ItemState, PatrolStore
from artoo.agents.storage.monotonic_clock import microseconds
from artoo.contracts.agents import PatrolRefused, Recorded
from artoo.ports.clock import Clock

SHORTEST_LOOK = 30.0
"""Minimum number of seconds between two checks, so that many wakes do not cause many checks."""
_ABSENT = "absent"


@dataclass(frozen=True, slots=True)
class PatrolRequest:
    """An item that is due, as a request. After a crash or a back-off, the same request has the same `key`."""

    key: str
    text: str
    source: str


Submit = Callable[[PatrolRequest], Awaitable[Done]]
Tell = Callable[[Recorded], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class _Due:
    item: PatrolItem
    state: ItemState
    mark: str
    source: str


@dataclass(slots=True)
class Patrol:
    """The patrol duty of one agent. Implements `Duty`. `paths`: the HEARTBEAT.md of the agent, and the routine of
    the home.

    The files may change at any time. An error in them is reported once, with file and line, and does not affect
    other items. If `run` is None, routines that are scripts are not run.
    """

    agent: str
    paths: Sequence[Path]
    store: PatrolStore
    sights: Looking
    clock: Clock
    submit: Submit
    tell: Tell
    run: RunScript | None = None
    name: str = "patrol"
    _items: dict[str, tuple[PatrolItem, str]] = field(default_factory=dict[str, tuple[PatrolItem, str]])
    _scripted: dict[str, tuple[PatrolItem, str]] = field(default_factory=dict[str, tuple[PatrolItem, str]])
    _told: dict[Path, tuple[Problem, ...]] = field(default_factory=dict[Path, tuple[Problem, ...]])
    _version: str | None = None
    _found: deque[_Due] = field(default_factory=deque["_Due"])
    _next_look: float = 0.0

    async def due(self) -> str | None:
        """Return how many items are due, or None. Implements `Duty.due`. Files and conditions are checked at most
        every 30 s. If an item was removed from the routine since it became due, it is dropped. Raises
        ActivityStoreError."""
        if self._found:
            await self._reread()
            known = self._items | self._scripted
            self._found = deque(one for one in self._found if one.item.key in known)
        if not self._found and self.clock.monotonic() >= self._next_look:
            self._next_look = self.clock.monotonic() + SHORTEST_LOOK
            await self._look()
        return f"{len(self._found)} due" if self._found else None

    async def do(self) -> Done:
        """Submit the next item that is due. Implements `Duty.do`."""
        found = self._found.popleft()
        now = self.clock.now()
        # The time in the key distinguishes two runs of the same item.
        key = found.state.open_key or f"patrol-{microseconds(now)}-{found.item.key}"
        taken = ItemState(now, found.mark, key)
        # The key is stored before the request begins, so that the item is submitted with the same key after a
        # crash.
        await self.store.put(found.item.key, taken)
        before = await self._files(found.item)
        done = await self.submit(PatrolRequest(key, found.item.request, found.source))
        if done.throttled is None and done.trouble is None:
            seen = await self._seen(found, before, done.made)
            await self.store.put(found.item.key, replace(taken, seen=seen, open_key=None))
        return done

    async def _files(self, item: PatrolItem) -> Mapping[str, str]:
        return {} if item.when is None else await self.sights.files(item.when)

    async def _seen(self, found: _Due, before: Mapping[str, str], made: Collection[str]) -> str:
        """Return the mark to be stored. Files that the run itself has changed do not count as new. All other
        changes do."""
        when = found.item.when
        if not made or not isinstance(when, FilesThere | FilesChanged):
            return found.mark
        after, own = await self._files(found.item), frozenset(map(os.path.realpath, made))

        def of_others(files: Mapping[str, str]) -> dict[str, str]:
            return {path: told for path, told in files.items() if os.path.realpath(path) not in own}

        same = await asyncio.to_thread(lambda: of_others(before) == of_others(after))
        if not same:
            return found.mark
        return mark_of(after) or (_ABSENT if isinstance(when, NOTED_FIRST) else "")

    async def _look(self) -> None:
        await self._reread()
        whole = await self._ask_scripts()
        items = self._items | self._scripted
        states = await self.store.states() if items or self._scripts else {}
        now = self.clock.now()
        for key, state in states.items():
            if whole and key.startswith(PRINTED) and key not in items and state.seen:
                await self.store.put(key, replace(state, seen=""))
        for key, (item, source) in items.items():
            found = await self._judge(item, states.get(key, ItemState()), now, source)
            if found is not None:
                self._found.append(found)

    async def _judge(self, item: PatrolItem, state: ItemState, now: datetime, source: str) -> _Due | None:
        if state.open_key is not None:
            return _Due(item, state, state.seen, source)
        if item.printed:
            return None if state.seen else _Due(item, state, PRINTED, source)
        if not await self._time_has_come(item, state, now):
            return None
        if item.when is None:
            return _Due(item, state, "", source)
        mark = await self.sights.mark(item.when)
        if isinstance(item.when, NOTED_FIRST):
            mark = mark or _ABSENT
            if not state.seen:
                await self.store.put(item.key, replace(state, seen=mark))
                return None
        if mark == state.seen:
            return None
        if not mark:
            await self.store.put(item.key, replace(state, seen=""))
            return None
        return _Due(item, state, mark, source)

    async def _time_has_come(self, item: PatrolItem, state: ItemState, now: datetime) -> bool:
        """Check whether it is time for the item. If the clock was set back, the interval begins now."""
        if item.at is not None and state.last_at is None:
            # The first check only records the time.
            await self.store.put(item.key, replace(state, last_at=now))
            return False
        if (item.every is None and item.at is None) or state.last_at is None:
            return True
        if state.last_at > now:
            await self.store.put(item.key, replace(state, last_at=now))
            return False
        if item.at is not None:
            return item.at.next_after(state.last_at) <= now
        return item.every is None or now - state.last_at >= item.every.interval

    @property
    def _scripts(self) -> tuple[Path, ...]:
        return () if self.run is None else tuple(path for path in self.paths if is_script(path))

    async def _ask_scripts(self) -> bool:
        """Run the routines that are scripts. Their errors are reported only when they change.

        Returns False if a script has failed. In that case, a line that is missing does not mean that its request
        was withdrawn.
        """
        whole = True
        found: dict[str, tuple[PatrolItem, str]] = {}
        for path in self._scripts:
            text = PatrolText() if self.run is None else await printed_by(path, self.run)
            found |= {item.key: (item, f"{path}:{item.line}") for item in text.items}
            whole = whole and not text.problems
            # This is also done at the first check, because an earlier process may have stored a problem.
            if self._told.get(path) != text.problems:
                self._told[path] = text.problems
                await self.store.note_problem(str(path), "; ".join(problem.text for problem in text.problems))
                for problem in text.problems:
                    await self._refuse(path, problem)
        self._scripted = found
        return whole

    async def _reread(self) -> None:
        version = await asyncio.to_thread(_version, self.paths)
        if version == self._version:
            return
        items: dict[str, tuple[PatrolItem, str]] = {}
        for path in self.paths:
            if is_script(path):
                continue
            text = await asyncio.to_thread(read_patrol, path)
            items |= {item.key: (item, f"{path}:{item.line}") for item in text.items if item.key not in items}
            for problem in text.problems:
                await self._refuse(path, problem)
        # A file that is just being saved may be empty for a moment, so the states of items are kept longer than the
        # items.
        await self.store.forget_oldest(items)
        self._items, self._version = items, version

    async def _refuse(self, path: Path, problem: Problem) -> None:
        at = self.clock.now()
        await self.tell(
            PatrolRefused(agent=self.agent, path=str(path), line=problem.line, problem=problem.text, at=at)
        )


def _version(paths: Sequence[Path]) -> str:
    """Return a text that changes whenever one of the files changes. Blocks."""
    told: list[str] = []
    for path in paths:
        try:
            status = path.stat()
            told.append(f"{status.st_ino} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}")
        except OSError as error:
            told.append(type(error).__name__)
    return "|".join(told)
