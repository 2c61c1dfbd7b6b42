"""A task's view over layers: runs commands in it and folds what they did, forks it, joins forks."""

from __future__ import annotations

import asyncio
import os
import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from artoo.contracts.changes import Change, Clash, Trait, printable_path
from artoo.contracts.errors import SandboxError
from artoo.contracts.settling import ClassifiedChange
from artoo.ports.sandbox import ActNote, Limits, Roots, RunStatus, SandboxRequest
from artoo.ports.world import Files, Program, ViewRun, unnoted
from artoo.world.began import Began
from artoo.world.classify import Places
from artoo.world.describe import describe
from artoo.world.difference import changed_meanwhile, classes_in
from artoo.world.joining import drop_layer, join_layers
from artoo.world.landing import is_ended, land, notes_of
from artoo.world.putting import put, put_in_scratch
from artoo.world.reserve import Ready
from artoo.world.runner import Ahead, Command, Over, Prepared, Runner
from artoo.world.scan import Effect, Touched, scan, scan_touched
from artoo.world.stage import Stage, empty_if_full, make_stage
from artoo.world.threads import or_undone, to_its_end
from artoo.world.union import Union
from artoo.world.view_place import TRUNK, Footing, ViewRecord, fork_name
from artoo.world.view_state import ViewState

_DEEPEST_FORK = 8
_T = TypeVar("_T")
_Noted = Callable[[tuple[Change, ...]], ActNote | None]
_Scanned = tuple[Sequence[Effect], Sequence[Touched]]


@dataclass(frozen=True, slots=True)
class Ways:
    """How the views of this process work. `artoo_home` is hidden from commands, as are `hide`; `ahead` makes
    sandboxes before their command is known."""

    runner: Runner
    artoo_home: Path
    hide: tuple[Path, ...] = ()
    ahead: Ahead | None = None


@dataclass(frozen=True, slots=True)
class _Started:
    """A command that is about to run, over a layer of its own. `limits`: its own, as the view has room."""

    stage: Stage
    began: Began
    command: Command
    limits: Limits


class LayeredView:
    """A View (`ports.world`) over one layer: the trunk, or a fork."""

    def __init__(self, ways: Ways, state: ViewState, layer: str = TRUNK) -> None:
        self._ways = ways
        self._state = state
        self._layer = layer
        self._turn = state.turn(layer)
        self._reserve = state.reserve(layer)

    @property
    def roots(self) -> Roots:
        return self._state.roots

    @property
    def footing(self) -> Footing:
        """What a view of this machine is made over. Blocking."""
        return self._state.footing

    @property
    def files(self) -> Files:
        return Union(self._state.place.strata(self._layer))

    async def run(self, program: Program) -> ViewRun:
        async with self._turn:
            started = await self._told(program) or await self._prepared(program)
            tidying = asyncio.ensure_future(asyncio.to_thread(self._state.tidy))  # while there is only to wait
            try:
                over = await started.command.run()
            except BaseException:
                await asyncio.to_thread(started.stage.discard)
                raise
            finally:
                await tidying
            over, changes = await to_its_end(lambda gone: self._ended(started, program, over, gone))
            if self._ways.ahead is not None:
                self._reserve.soon(partial(self._stand_by, self._ways.ahead, program.limits))
            return self._outcome(over, changes)

    async def _told(self, program: Program) -> _Started | None:
        """The program in the sandbox that stands by, if one does and is as one would be now."""
        ready = await self._reserve.take()
        if ready is None:
            return None
        began = Began.now()
        try:
            command = await to_its_end(lambda _: self._fits(ready, program))
        except BaseException:
            await ready.dismiss()
            raise
        if command is None:
            await ready.dismiss()
            return None
        return _Started(ready.stage, began, *command)

    def _fits(self, ready: Ready, program: Program) -> tuple[Command, Limits] | None:
        self._require_current()
        limits = self._state.allowance.bound(program.limits)
        command = ready.standing.told(self._request(program, limits))
        return None if command is None else (command, limits)

    async def _stand_by(self, ahead: Ahead, limits: Limits) -> Ready:
        """A sandbox for the next command over this layer, which nobody changes meanwhile (`Reserve`)."""
        bound = self._state.allowance.bound(limits)
        stage = await or_undone(lambda: self._begin(bound), Stage.discard)
        try:
            return Ready(stage, await ahead.stand_by(self._request(Program(()), bound), stage))
        except BaseException:
            await asyncio.to_thread(stage.discard)
            raise

    def _ended(
        self, started: _Started, program: Program, over: Over, gone: threading.Event
    ) -> tuple[Over, tuple[Change, ...]]:
        """How it ended after all, and what it changed: nothing, if it met a limit."""

        def note(changes: tuple[Change, ...]) -> ActNote | None:
            return program.note(self._outcome(over, changes))

        try:
            if over.ended.limit == "disk_limit":
                empty_if_full(self._state.place.scratch, program.limits)
            if over.ended.limit is not None:
                return over, ()
            scanned = scan_touched(started.stage.layers, program.limits.paths)
            over = _with_limit(over, scanned, started.limits)
            if over.ended.limit is not None:
                return over, ()
            return over, self._end(started.stage, scanned, program, started.began, gone, note)
        finally:
            _release(started.stage)

    def _request(self, program: Program, limits: Limits) -> SandboxRequest:
        return SandboxRequest(
            argv=program.argv,
            cwd=self.roots.project,
            roots=self.roots,
            task_id=self._state.place.task_id,
            read_only=program.read_only,
            unconfined=program.unconfined,
            env=program.env,
            keep_env=program.keep_env,
            stdin=program.stdin,
            hosts=program.hosts,
            heard=program.heard,
            printed=program.printed,
            limits=limits,
            scratch=self._state.place.scratch,
            hide=self._ways.hide,
        )

    async def _prepared(self, program: Program) -> _Started:
        """All that comes before a command: one way to a thread and back."""

        def undo(made: tuple[Stage, Began, Prepared, Limits]) -> None:
            stage, _, command, _ = made
            command.discard()
            stage.discard()

        return _Started(*await or_undone(lambda: self._prepare(program), undo))

    def _prepare(self, program: Program) -> tuple[Stage, Began, Prepared, Limits]:
        limits = self._state.allowance.bound(program.limits)
        began = Began.now()
        stage = self._begin(limits)
        try:
            home = self._state.place.layer_home(self._layer)
            prepared = self._ways.runner.prepare(self._request(program, limits), stage, home)
            return stage, began, prepared, limits
        except BaseException:
            stage.discard()
            raise

    def _begin(self, limits: Limits | None) -> Stage:
        """A layer of its own for the next change. `limits`: a command's; None: a file that we write."""
        record = self._require_current()
        place = self._state.place
        home = place.commands
        if limits is not None:
            home = self._ways.runner.stage_home(limits.disk_bytes, home)
        below = {
            root: tuple(upper for upper in (place.upper(self._layer, number),) if upper.is_dir())
            + place.below(self._layer, number)
            for number, root in enumerate(record.real_roots)
        }
        return make_stage(home, uuid.uuid4().hex, record.real_roots, below)

    def _require_current(self) -> ViewRecord:
        """The record of a view in which something may be done now. Raises SandboxError."""
        record = self._state.at_boundary()
        self._state.require_no_forks(self._layer)
        return record

    def _end(
        self,
        stage: Stage,
        scanned: _Scanned,
        program: Program,
        began: Began,
        gone: threading.Event,
        note: _Noted,
    ) -> tuple[Change, ...]:
        effects, touched = scanned
        if not effects:
            return ()
        changes = describe(effects, Places.of(self.roots, self._ways.artoo_home))
        if program.read_only:
            return changes

        def still_wanted() -> None:
            if gone.is_set():
                raise SandboxError("the command was cancelled: its changes were dropped")

        known = self._state.known(self._layer)
        extent = stage.extent()
        home, bases = land(
            self._state.place,
            self._layer,
            stage,
            effects,
            touched,
            known,
            began,
            note=note(changes),
            still_wanted=still_wanted,
        )
        known.update(base.path for base in bases)
        self._state.allowance.took(extent)
        self._state.fold(home)
        return changes

    def _outcome(self, over: Over, changes: tuple[Change, ...]) -> ViewRun:
        ended = over.ended
        status: RunStatus = ended.limit or ("ok" if ended.exit_code == 0 else "error")
        dropped = ended.limit is not None and ended.limit != "refused"
        return ViewRun(
            tier=self._ways.runner.tier,
            status=status,
            exit_code=ended.exit_code if ended.limit is None else None,
            stdout=ended.stdout,
            stderr=ended.stderr,
            duration_seconds=ended.duration_seconds,
            changes=changes,
            needs_confirmation=over.ask,
            notes=(*over.notes, "its changes were dropped") if dropped else over.notes,
        )

    async def write(self, path: Path, content: bytes, note: _Noted = unnoted) -> tuple[Change, ...]:
        async with self._turn:
            await self._reserve.dismiss()
            changes = await to_its_end(lambda gone: self._write(path, content, gone, note))
            self._reserve.again()
            return changes

    def _write(self, path: Path, content: bytes, gone: threading.Event, note: _Noted) -> tuple[Change, ...]:
        self._state.allowance.require(len(content))
        began = Began.now()
        stage = self._begin(None)
        try:
            real = self.files.resolve(self.roots.project / path)
            layer = stage.layer_of(os.fsencode(real))
            if layer is not None and real != layer.root:
                put(layer, real, content)
                scanned = scan_touched(stage.layers, Limits().paths)
                return self._end(stage, scanned, Program(()), began, gone, note)
            for private in (Path("/tmp"), Path("/var/tmp")):
                if real.is_relative_to(private) and real != private:
                    put_in_scratch(self._state.place.scratch, real.relative_to(private), content)
                    return ()
        except OSError as error:
            shown = printable_path(os.fsencode(path))
            raise SandboxError(f"{shown} cannot be written: {error.strerror}; nothing was changed") from error
        finally:
            _release(stage)
            self._state.tidy()
        shown = printable_path(os.fsencode(real))
        raise SandboxError(f"{shown} is outside home, workspace and project: nothing may be written there")

    async def notes(self) -> Mapping[str, ActNote]:
        return await asyncio.to_thread(notes_of, self._state.place)

    async def changes(self) -> tuple[Change, ...]:
        async with self._turn:
            return await asyncio.to_thread(self._changes) if self._state.place.exists else ()

    def _changes(self) -> tuple[Change, ...]:
        place = self._state.place
        self._state.at_boundary()
        effects = scan(place.layers_of(self._layer), Limits().paths)
        others = changed_meanwhile(place, self._layer, effects)
        return tuple(
            one.model_copy(update={"traits": (*one.traits, Trait.CHANGED_MEANWHILE)}) if one.path in others else one
            for one in describe(effects, Places.of(self.roots, self._ways.artoo_home))
        )

    async def classes(self) -> tuple[ClassifiedChange, ...]:
        async with self._turn:
            return await asyncio.to_thread(self._classes) if self._state.place.exists else ()

    def _classes(self) -> tuple[ClassifiedChange, ...]:
        self._state.at_boundary()
        return classes_in(self._state.place, self._layer, self._ways.artoo_home)

    def fork(self, name: str) -> LayeredView:
        if self._layer.count("/") + 2 > _DEEPEST_FORK:
            raise SandboxError(f"a view cannot be forked more than {_DEEPEST_FORK} levels deep")
        return LayeredView(self._ways, self._state, self._state.fork(self._layer, name))

    async def join(self, names: Sequence[str]) -> tuple[Clash, ...]:
        async with self._turn:
            await self._state.dismiss((self._layer, *(fork_name(self._layer, name) for name in names)))
            return await self._quickly(lambda: self._join(names))

    def _join(self, names: Sequence[str]) -> tuple[Clash, ...]:
        layers = [fork_name(self._layer, name) for name in names]
        place = self._state.place
        conflicts: tuple[Clash, ...] = ()
        if place.exists:
            self._state.at_boundary()
            conflicts = join_layers(place, self._layer, layers)
        for layer in layers:
            self._state.forget_fork(self._layer, layer)
        self._state.forget_base(self._layer)
        return conflicts

    async def drop(self, name: str) -> None:
        async with self._turn:
            await self._state.dismiss((fork_name(self._layer, name),))
            await self._quickly(lambda: self._drop(fork_name(self._layer, name)))

    def _drop(self, layer: str) -> None:
        if self._state.place.exists:
            self._state.at_boundary()
            drop_layer(self._state.place, layer)
        self._state.forget_fork(self._layer, layer)

    async def close(self) -> None:
        async with self._turn:
            await self._state.dismiss()
            if self._state.was_taken:
                await self._quickly(self._state.close)

    async def _quickly(self, work: Callable[[], _T]) -> _T:
        """Work on what is on disk, in a thread. While nothing is there a thread costs more than the work itself."""
        return await to_its_end(lambda _: work()) if self._state.place.exists else work()


def _with_limit(over: Over, scanned: _Scanned, limits: Limits) -> Over:
    """A command may have gone on after the kernel had cut a file of it: then it met a limit all the same."""
    cut = (one.shown for one in scanned[0] if one.after is not None and one.after.size == limits.file_bytes)
    if (path := next(cut, None)) is None:
        return over
    return replace(over, ended=replace(over.ended, limit="disk_limit"), notes=(*over.notes, f"{path} was cut"))


def _release(stage: Stage) -> None:
    """Forgets a command's layer, unless it has ended and only waits for room to be folded."""
    if is_ended(stage.base):
        os.close(stage.lock)
    else:
        stage.discard()
