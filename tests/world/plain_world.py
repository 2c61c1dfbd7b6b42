"""A plain user's home, and acts done with no more than their rights."""

from __future__ import annotations

import os
import shutil
import tempfile
import traceback
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from sandbox_world import World

PLAIN_USER = 12_345


@contextmanager
def plain_world() -> Generator[World]:
    """A home of a plain user's."""
    place = Path(tempfile.mkdtemp(prefix="artoo-plain-")).resolve()
    one = World(place / "home")
    one.project.mkdir(parents=True)
    if os.geteuid() == 0:
        for path in (place, one.home, one.project):
            os.chown(path, PLAIN_USER, PLAIN_USER)
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
                os.setresgid(PLAIN_USER, PLAIN_USER, PLAIN_USER)
                os.setresuid(PLAIN_USER, PLAIN_USER, PLAIN_USER)
            act()
            code = 0
        except BaseException:  # noqa: BLE001 - the child must end here, whatever happens in it
            traceback.print_exc()
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
