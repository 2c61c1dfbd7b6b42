"""Run tests, or one function, as a user without root's rights."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest

import artoo
from artoo.sandbox.remove_tree import remove_tree

PLAIN_USER = 12_345
_NEW_USER_NAMESPACE = 0x10000000


def as_plain_user(*files: Path, only: str = "", seconds: float = 170) -> None:
    """Run tests of files (`only`: pytest's -k) as a user without rights; skip where this is one, or cannot be."""
    python = f"/usr/bin/python{sys.version_info[0]}.{sys.version_info[1]}"
    if os.geteuid() != 0:
        pytest.skip("this is a plain user already")
    if not os.access(python, os.X_OK):
        pytest.skip(f"a plain user can start no {python}")
    root = Path(__file__).parents[1]
    place = Path(tempfile.mkdtemp(prefix="artoo-plain-"))
    os.chown(place, 65534, 65534)
    library = next(path for path in sys.path if path.endswith("site-packages"))
    source = str(Path(artoo.__file__).parents[1])
    environment = {
        "PATH": os.defpath,
        "HOME": str(place),
        "PYTHONPATH": os.pathsep.join((source, str(root), library)),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    options = ("-q", "-x", "-n0", "-p", "no:cacheprovider", f"--basetemp={place}/tests", "-k", only)
    done = subprocess.run(
        ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", python, "-m", "pytest", *options, *files),
        env=environment,
        cwd=root,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    remove_tree(place)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]


def act_as_plain_user(act: Callable[[], None], *, user_namespaces: bool = True) -> None:
    """Do something without root's rights, in a process of its own.

    Without `user_namespaces` this process is in a user namespace whose own limit of further ones is 0, which is
    what `user.max_user_namespaces = 0` means for a whole machine. The machine's setting is not touched.
    """
    started, go_on = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            if not user_namespaces:
                if ctypes.CDLL(None).unshare(_NEW_USER_NAMESPACE) != 0:
                    os._exit(77)
                os.write(started[1], b".")
                os.read(go_on[0], 1)
                Path("/proc/sys/user/max_user_namespaces").write_bytes(b"0")
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
    os.close(started[1])
    if not user_namespaces and os.read(started[0], 1):
        highest = 65_536 if os.geteuid() == 0 else 1
        first = (0, 0) if os.geteuid() == 0 else (os.geteuid(), os.getegid())
        if os.geteuid() != 0:
            Path(f"/proc/{child}/setgroups").write_bytes(b"deny")
        for name, own in zip(("uid_map", "gid_map"), first, strict=True):
            Path(f"/proc/{child}/{name}").write_bytes(b"%d %d %d" % (own, own, highest))
        os.write(go_on[1], b".")
    for descriptor in (started[0], *go_on):
        os.close(descriptor)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code == 77:
        pytest.skip("no user namespace can be made here, so none can be forbidden")
    assert code == 0
