"""The end of a command in a view: what it did becomes part of its layer, whole or not at all.

    layer of the command ─ carried to disk ─► VIEW/commands/ID ─ `ended` is written ─► folded, and forgotten
    how its call ended ──────── noted ──────────────┘

Before `ended` stands there, nothing happened; afterwards the fold is finished, now or by the next process. Nothing
is synced: whoever kills a process loses nothing, and a view is made durable when it begins to wait for a person.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from artoo.contracts.errors import SandboxError
from artoo.ports.sandbox import ActNote
from artoo.world.acts import keep_note, move_notes, read_notes
from artoo.world.base import Base, append_base, bases_of
from artoo.world.began import Began
from artoo.world.carry import carry
from artoo.world.fold import fold
from artoo.world.remove import remove_tree
from artoo.world.scan import Effect, Touched
from artoo.world.stage import Stage
from artoo.world.view_place import ViewPlace

_ENDED = "ended"
_ACTS = "acts"


class Ended(BaseModel):
    """The marker: this command's layer is whole, and belongs to that one."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)  # an earlier artoo said more

    layer: str


def land(
    place: ViewPlace,
    layer: str,
    stage: Stage,
    effects: Sequence[Effect],
    touched: Sequence[Touched],
    known: Container[str],
    began: Began,
    *,
    note: ActNote | None,
    still_wanted: Callable[[], None],
) -> tuple[Path, tuple[Base, ...]]:
    """Decides that what a command did becomes part of `layer`: what is to be folded, and kept of the real files.

    `began`: when it did. `note`: how its call ended; it is part of the view if that is.
    Raises SandboxError when there is no room, or what `still_wanted` raises: nothing of it is in the view then.
    """
    home = place.commands / stage.base.name
    try:
        _bring(stage, home, {effect.layer.root for effect in effects})
        bases = tuple(bases_of(known, touched, began.until(Began.now())))
        place.base_file(layer).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        append_base(place.base_file(layer), bases)
        if note is not None:
            keep_note(home / _ACTS, note)
        still_wanted()
        _mark(home, Ended(layer=layer))
    except BaseException as error:
        if home != stage.base:
            remove_tree(home)
        if isinstance(error, OSError):
            raise no_room("the command's changes were dropped", error) from error
        raise
    return home, bases


def _bring(stage: Stage, home: Path, roots: Container[Path]) -> None:
    """The command's layers on the view's disk; those that change nothing are left behind."""
    for number, layer in enumerate(stage.layers):
        target = home / str(number) / "up"
        if layer.root not in roots:
            if home == stage.base:
                remove_tree(target)
        elif home != stage.base:
            home.mkdir(mode=0o700, exist_ok=True)
            target.parent.mkdir(mode=0o700)
            carry(layer.upper, target)


def _mark(home: Path, marker: Ended) -> None:
    """It is there whole or not at all: nobody else writes in `home`, and nothing is durable yet."""
    fresh = home / f".{_ENDED}"
    fresh.write_bytes(marker.model_dump_json().encode())
    fresh.replace(home / _ENDED)


def finish(place: ViewPlace, home: Path) -> Path:
    """Folds a command that has ended. Raises SandboxError; it can be tried again then.

    What is left of it is put aside, for somebody who has the time to remove it: directories that say nothing.
    """
    path = home / _ENDED
    try:
        marker = Ended.model_validate_json(path.read_bytes())
        for number, upper in _uppers(home):
            fold(upper, place.make_layer(marker.layer, number))
        move_notes(home / _ACTS, place.acts(marker.layer))
        place.spent.mkdir(mode=0o700, exist_ok=True)
        return home.rename(place.spent / home.name)
    except OSError as error:
        raise no_room("what the command did is kept, and becomes part of the view when there is", error) from error
    except ValidationError as error:
        raise SandboxError(f"{path} cannot be read: {error}; keep it and report this") from error


def is_ended(home: Path) -> bool:
    """Whether a command's layer is part of the view, folded or not."""
    return (home / _ENDED).exists()


def finish_all(place: ViewPlace) -> None:
    """Puts a view that nobody works in back to a command's boundary: ended ones are folded, others dropped."""
    for home in sorted(place.commands.iterdir()) if place.commands.is_dir() else ():
        if is_ended(home):
            finish(place, home)
        else:
            remove_tree(home)
    remove_tree(place.spent)


def notes_of(place: ViewPlace) -> dict[str, ActNote]:
    """How calls ended whose changes are part of a view or of a fork in it, by act. Raises SandboxError."""
    homes = sorted(place.commands.iterdir()) if place.commands.is_dir() else []
    waiting = [home / _ACTS for home in homes if is_ended(home)]  # there was no room to fold it
    return read_notes([*map(place.acts, place.layer_names()), *waiting])


def _uppers(home: Path) -> Iterator[tuple[int, Path]]:
    for child in sorted(home.iterdir()):
        if child.name.isdigit() and (child / "up").is_dir():
            yield int(child.name), child / "up"


def no_room(what: str, error: OSError) -> SandboxError:
    """The error for a view that could not be written. `what` says how things stand."""
    return SandboxError(f"the view cannot be written ({error.strerror}): {what}; free space on that disk")
