"""What the modes of directories keep a plain user from, and never root."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sandbox_world import World

from artoo.world.carry import OPAQUE
from artoo.world.fold import fold
from artoo.world.stage import Layer

_PLAIN_USER = 12_345


@pytest.fixture
def open_world() -> Iterator[World]:
    """A home of a plain user's."""
    place = Path(tempfile.mkdtemp(prefix="artoo-plain-")).resolve()
    one = World(place / "home")
    one.project.mkdir(parents=True)
    if os.geteuid() == 0:
        for path in (place, one.home, one.project):
            os.chown(path, _PLAIN_USER, _PLAIN_USER)
    yield one
    for directory, _, _ in os.walk(place):
        os.chmod(directory, 0o700)
    shutil.rmtree(place)


def as_plain_user(act: Callable[[], None]) -> None:
    """Does it without root's rights, in a process of its own."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setresgid(_PLAIN_USER, _PLAIN_USER, _PLAIN_USER)
                os.setresuid(_PLAIN_USER, _PLAIN_USER, _PLAIN_USER)
            act()
            code = 0
        except BaseException:  # noqa: BLE001 - the child must end here, whatever happens in it
            traceback.print_exc()
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0


def test_a_read_only_directory_is_folded_over_what_stops_the_stack(open_world: World) -> None:
    """An attribute is set on it first, for which its own mode has to be opened."""
    world = open_world

    def act() -> None:
        above, under = world.home / "above/up", world.home / "under/up"
        for place in (above, under):
            place.mkdir(parents=True)
        (under / "d").write_text("made by an earlier command")
        (above / "d").mkdir()
        (above / "d/f").write_text("f")
        (above / "d").chmod(0o555)
        fold(above, Layer(world.project, under, under.with_name("work"), ()))
        assert (under / "d/f").read_text() == "f"
        assert stat.S_IMODE((under / "d").stat().st_mode) == 0o555
        assert os.getxattr(under / "d", OPAQUE) == b"y"

    as_plain_user(act)
