"""A stand-alone program that confines itself and then becomes a command; the standard library only.

    python -I -S launcher.py CONFIG_FD STATUS_FD
    python -I -S launcher.py enter HERE_FD WORDS_FD DIRECTORY...

CONFIG_FD gives one JSON object (`group.LaunchPlan`). STATUS_FD receives JSON lines: `{"child-pid": N}` when the
command's first process exists, `{"exit-code": N}` after its end if it was ever reached. Modes: `plain` (only
supervised), `landlock` (files read-only, no sockets), `namespaces` (own view of files, processes and network).
Whatever the mode, no process of the command is left when this program ends. The second form is what `entry.py`
describes.
"""

from __future__ import annotations

import _socket
import contextlib
import ctypes
import fcntl
import json
import os
import select
import signal
import struct
import sys
import time
from collections.abc import Generator
from typing import Any, NoReturn

_LIBC = ctypes.CDLL(None, use_errno=True)
_DEATH_SIGNAL, _SUBREAPER, _NO_NEW_PRIVILEGES, _SECCOMP, _DROP_BOUND = 1, 36, 38, 22, 24
_NEW_NAMESPACES = 0x10000000 | 0x00020000 | 0x20000000 | 0x40000000 | 0x08000000 | 0x04000000
_PRIVATE_RECURSIVE, _BIND, _NOSUID, _NODEV, _NOEXEC, _READ_ONLY = 0x44000, 0x1000, 0x2, 0x4, 0x8, 0x1
_MOUNT_SETATTR, _AT_RECURSIVE = 442, 0x8000
_RECURSIVE, _DETACH = 0x4000, 2
_RULESET, _RULE, _RESTRICT = 444, 445, 446
_EXECUTE, _WRITE, _READ, _LIST, _MOVE = 1, 2, 4, 8, 0x2000
_GIVE_UP_SECONDS = 5.0
_SET_FLAGS, _UP, _PORT = 0x8914, 0x1 | 0x40, 3128
_OVER_FILES = 1 << 0 | 1 << 1 | 1 << 3 | 1 << 4  # CHOWN, DAC_OVERRIDE, FOWNER, FSETID
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")


def _check(result: int, what: str) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")
    return result


def _prctl(option: int, value: int) -> None:
    _check(_LIBC.prctl(option, value, 0, 0, 0), f"prctl {option}")


def _mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    arguments = (source.encode(), os.fsencode(target), kind.encode(), ctypes.c_ulong(flags), os.fsencode(options))
    _check(_LIBC.mount(*arguments), f"mount {kind or 'bind'} on {target}")


def _mark(target: str, now: int, no_longer: int = 0, *, recursive: bool = False) -> None:
    """Sets and clears attributes of a mount."""
    bits = struct.pack("QQQQ", now, no_longer, 0, 0)
    flags = _AT_RECURSIVE if recursive else 0
    result = _LIBC.syscall(_MOUNT_SETATTR, -100, os.fsencode(target), flags, bits, ctypes.c_size_t(len(bits)))
    _check(result, f"mount_setattr on {target}")


# --- Landlock ---------------------------------------------------------------------------------------------------


def landlock_version() -> int:
    """The kernel's Landlock version, 0 when it has none or has it switched off."""
    return max(0, _LIBC.syscall(_RULESET, None, ctypes.c_size_t(0), 1))


def _file_rights(version: int) -> int:
    newest = 13 if version < 2 else 14 if version < 3 else 15 if version < 5 else 16
    return (1 << newest) - 1


def restrict_files(readable: list[str], listable: list[str], writable: list[str], *, network: bool) -> None:
    """Landlock: read and run below `readable`, list below `listable`, everything below `writable`, nothing else."""
    version = landlock_version()
    if version == 0:
        raise OSError("the kernel has no Landlock")
    rights = _file_rights(version)
    attributes = struct.pack("QQQ", rights, 0 if network else 3, 3)[
        : 8 if version < 4 else 16 if version < 6 else 24
    ]
    ruleset = _check(_LIBC.syscall(_RULESET, attributes, ctypes.c_size_t(len(attributes)), 0), "landlock ruleset")
    groups = ((readable, _EXECUTE | _READ | _LIST), (listable, _LIST), (writable, rights))
    for paths, access in groups:
        for path in paths:
            _allow(ruleset, path, access & rights)
    _prctl(_NO_NEW_PRIVILEGES, 1)
    _check(_LIBC.syscall(_RESTRICT, ruleset, 0), "landlock restrict")
    os.close(ruleset)


def enter(arguments: list[str]) -> NoReturn:
    """Holds writing to the given directories, waits until it is told what to run, and becomes that.

    The first argument is a socket by which it is told, and which can be written to while whoever started this
    lives; the second a file that holds the program, its words and its variables by then.
    """
    here, words = map(int, arguments[:2])
    attributes = struct.pack("Q", _WRITE | _MOVE)
    ruleset = _LIBC.syscall(_RULESET, attributes, ctypes.c_size_t(len(attributes)), 0)
    if ruleset < 0:
        sys.exit("sandbox: Landlock is missing or refuses")
    for path in arguments[2:]:
        _allow(ruleset, path, _WRITE | _MOVE)
    _check(_LIBC.syscall(_RESTRICT, ruleset, 0), "landlock restrict")
    os.read(here, 1)
    try:
        os.write(here, b".")
    except OSError:
        sys.exit("sandbox: who started this is gone")
    with open(words, encoding="ascii") as file:
        argv, env = json.load(file)
    os.closerange(3, 4096)
    os.execve(argv[0], argv, env)


def _allow(ruleset: int, path: str, access: int) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:  # gone, or not ours to see: then nothing there is allowed
        return
    try:
        if not os.path.isdir(f"/proc/self/fd/{descriptor}"):
            access &= _EXECUTE | _WRITE | _READ | (1 << 14) | (1 << 15)
            access &= _file_rights(landlock_version())
        rule = struct.pack("=Qi", access, descriptor)
        _check(_LIBC.syscall(_RULE, ruleset, 1, rule, 0), f"landlock rule for {path}")
    finally:
        os.close(descriptor)


# --- namespaces -------------------------------------------------------------------------------------------------


def _enter_namespaces() -> None:
    uid, gid = os.geteuid(), os.getegid()
    _check(_LIBC.unshare(_NEW_NAMESPACES | 0x02000000), "unshare (user namespaces)")
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        with open(f"/proc/self/{name}", "w", encoding="utf-8") as file:
            file.write(text)


def _open_network(door: int | None) -> None:
    """Brings the loopback device up; with a door, listens there and sends the socket out (`edge.inside`)."""
    listening = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    fcntl.ioctl(listening.fileno(), _SET_FLAGS, struct.pack("16sH14x", b"lo", _UP))
    if door is not None:
        listening.bind(("", _PORT))
        listening.listen(128)
        through = _socket.socket(fileno=door)
        rights = (_socket.SOL_SOCKET, _socket.SCM_RIGHTS, struct.pack("i", listening.fileno()))
        through.sendmsg([b"."], [rights])
        through.close()
    listening.close()


def _build_view(plan: dict[str, Any]) -> None:
    """Makes the file system that the command sees. Everything is opened before anything is covered."""
    _mount("none", "/", "", _PRIVATE_RECURSIVE)
    opened = {path: os.open(path, os.O_PATH | os.O_CLOEXEC) for path in _sources(plan)}
    for place in ("/tmp", "/var/tmp"):
        if os.path.isdir(place):
            _bind(opened[plan["scratch"]], place)
    _mount("tmpfs", "/run", "tmpfs", _NOSUID | _NODEV, "mode=755,size=64k")
    _devices(opened, plan["shared_memory"])
    inside = {
        path for path in plan["bound"] for layer in plan["layers"] if (path + "/").startswith(layer["root"] + "/")
    }
    _bind_as_is([path for path in plan["bound"] if path not in inside], opened)
    for layer in plan["layers"]:
        _overlay(layer, opened)
    _bind_as_is([path for path in plan["bound"] if path in inside], opened)
    for path in plan["hidden"]:
        _hide(path, opened[plan["empty"]])
    _mark("/", _READ_ONLY | _NOSUID | _NODEV, recursive=True)
    for name in _DEVICES:
        if os.path.exists(f"/dev/{name}"):
            _mark(f"/dev/{name}", 0, _NODEV)
    for path in (*plan["writable"], "/dev/shm"):
        if os.path.isdir(path):
            _mark(path, 0, _READ_ONLY)
    _fresh_proc()
    for descriptor in opened.values():
        os.close(descriptor)


def _overlay(layer: dict[str, Any], opened: dict[str, int]) -> None:
    """A root under its layers; seen through an overlay of its own where a layer lies inside it."""
    os.makedirs(layer["root"], exist_ok=True)
    with _lowest(opened[layer["root"]], layer["inside"]) as lowest:
        descriptors = [*(opened[path] for path in layer["below"]), lowest]
        lower = ":".join(f"/proc/self/fd/{descriptor}" for descriptor in descriptors)
        upper, work = opened[layer["upper"]], opened[layer["work"]]
        options = f"lowerdir={lower},upperdir=/proc/self/fd/{upper},workdir=/proc/self/fd/{work},userxattr"
        _mount("overlay", layer["root"], "overlay", _NOSUID | _NODEV, options)


@contextlib.contextmanager
def _lowest(root: int, inside: bool) -> Generator[int]:
    """The root; as another file system if a layer lies in it, since no lower directory may lie in another one."""
    if not inside:
        yield root
        return
    alone, void = "/run/alone", "/run/void"
    os.mkdir(void)
    os.mkdir(alone)
    empty = os.open(void, os.O_PATH | os.O_CLOEXEC)
    sources = f"lowerdir=/proc/self/fd/{root}:/proc/self/fd/{empty},userxattr"
    _mount("overlay", alone, "overlay", _NOSUID | _NODEV | _READ_ONLY, sources)
    descriptor = os.open(alone, os.O_PATH | os.O_CLOEXEC)
    yield descriptor
    os.close(descriptor)
    os.close(empty)
    _check(_LIBC.umount2(alone.encode(), _DETACH), f"umount {alone}")
    os.rmdir(alone)
    os.rmdir(void)


def _sources(plan: dict[str, Any]) -> list[str]:
    layers = [layer[key] for layer in plan["layers"] for key in ("root", "upper", "work")]
    layers += [path for layer in plan["layers"] for path in layer["below"]]
    devices = [f"/dev/{name}" for name in _DEVICES if os.path.exists(f"/dev/{name}")]
    return [plan["scratch"], plan["empty"], *layers, *plan["bound"], *devices]


def _bind(descriptor: int, target: str, more: int = 0) -> None:
    _mount(f"/proc/self/fd/{descriptor}", target, "", _BIND | more)


def _bind_as_is(paths: list[str], opened: dict[str, int]) -> None:
    """Shows directories with all that is mounted in them; nothing that another mount hid becomes visible."""
    for path in paths:
        if not os.path.exists(path):
            os.makedirs(path)
        _bind(opened[path], path, _RECURSIVE)


def _devices(opened: dict[str, int], shared_memory: int) -> None:
    _mount("tmpfs", "/dev", "tmpfs", _NOSUID, "mode=755,size=1m")
    for name in _DEVICES:
        if f"/dev/{name}" in opened:
            os.close(os.open(f"/dev/{name}", os.O_CREAT | os.O_WRONLY))
            _bind(opened[f"/dev/{name}"], f"/dev/{name}")
    for name, target in (("fd", "/proc/self/fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2")):
        os.symlink(target, f"/dev/{name}")
    os.mkdir("/dev/shm")
    _mount("tmpfs", "/dev/shm", "tmpfs", _NOSUID | _NODEV, f"mode=1777,size={shared_memory}")


def _hide(path: str, empty: int) -> None:
    if os.path.isdir(path):
        _mount("tmpfs", path, "tmpfs", _NOSUID | _NODEV, "mode=000,size=4k")
    else:
        _bind(empty, path)


def _fresh_proc() -> None:
    """Nothing in it can be written: what belongs to root there belongs to the machine (`/proc/sys`)."""
    _mount("proc", "/proc", "proc", _NOSUID | _NODEV | _NOEXEC)
    _mark("/proc", _READ_ONLY)


def _drop_privileges(kept: int) -> None:
    """Gives up all capabilities but those of the mask `kept`, and never gets one back."""
    _prctl(_NO_NEW_PRIVILEGES, 1)
    for capability in range(64):
        if not kept >> capability & 1 and _LIBC.prctl(_DROP_BOUND, capability, 0, 0, 0) < 0:
            break
    header, held = struct.pack("Ii", 0x20080522, 0), ctypes.create_string_buffer(24)
    _check(_LIBC.capget(header, held), "capget")
    permitted = struct.unpack("6I", held.raw)[1] & kept
    _check(_LIBC.capset(header, struct.pack("6I", permitted, permitted, 0, 0, 0, 0)), "capset")


# --- the command ------------------------------------------------------------------------------------------------


def _install_filter(program: bytes) -> None:
    class Filter(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_void_p))

    steps = ctypes.create_string_buffer(program, len(program))
    loaded = Filter(len(program) // 8, ctypes.addressof(steps))
    _prctl(_NO_NEW_PRIVILEGES, 1)
    _check(_LIBC.prctl(_SECCOMP, 2, ctypes.byref(loaded), 0, 0), "seccomp")


def _become(plan: dict[str, Any], reached: int) -> NoReturn:
    """Confines this process and runs the command in its place; says why on stderr when that fails."""
    try:
        if plan["mode"] == "namespaces":
            _build_view(plan)
            if landlock_version():
                restrict_files(["/"], [], [*plan["writable"], "/dev"], network=True)
            # As in the other tiers: else a mode that root gave a directory (`chmod 600`) keeps root out of it.
            _drop_privileges(_OVER_FILES if os.geteuid() == 0 else 0)
        elif plan["mode"] == "landlock":
            if os.geteuid() == 0:
                _drop_privileges(_OVER_FILES)
            restrict_files(plan["readable"], ["/"], [*plan["writable"], *plan["devices"]], network=False)
        if plan["filter"]:
            _install_filter(bytes.fromhex(plan["filter"]))
        os.chdir(plan["cwd"])
        os.set_inheritable(reached, False)
        os.execvpe(plan["argv"][0], plan["argv"], plan["env"])
    except OSError as error:
        os.write(2, f"sandbox: {error}\n".encode())
    os.write(reached, b"x")
    os._exit(126)


def _children(of: int) -> list[int]:
    """All descendants of a process."""
    parents: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
                parents.setdefault(int(file.read().rpartition(b")")[2].split()[1]), []).append(int(name))
    found: list[int] = []
    todo = [of]
    while todo:
        below = parents.get(todo.pop(), [])
        found += below
        todo += below
    return found


def _end_everything() -> None:
    """Kills and reaps whatever still runs below this process."""
    deadline = time.monotonic() + _GIVE_UP_SECONDS
    while time.monotonic() < deadline:
        for pid in _children(os.getpid()):
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                continue
            time.sleep(0.005)
            continue
        return


def _terminated(number: int, frame: object) -> None:
    _end_everything()
    os._exit(143)


def _unread(pipe: int) -> bool:
    """Whether nobody is left at the other end: a process that died before it could be asked to be told of."""
    look = select.poll()
    look.register(pipe, 0)
    return bool(look.poll(0))


def main() -> int:
    if sys.argv[1] == "enter":
        enter(sys.argv[2:])
    config_fd, status_fd = int(sys.argv[1]), int(sys.argv[2])
    with open(config_fd, "rb") as file:
        plan: dict[str, Any] = json.load(file)
    signal.signal(signal.SIGTERM, _terminated)
    _prctl(_DEATH_SIGNAL, signal.SIGTERM)
    _prctl(_SUBREAPER, 1)
    if _unread(status_fd):
        return 143
    if plan["mode"] == "namespaces":
        _enter_namespaces()
        _open_network(plan["door"])
    failed, reached = os.pipe()
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        _prctl(_DEATH_SIGNAL, signal.SIGKILL)
        os.close(status_fd)
        os.close(failed)
        if _unread(reached):
            os._exit(143)
        _become(plan, reached)
    os.close(reached)
    os.write(status_fd, json.dumps({"child-pid": child}).encode() + b"\n")
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    _end_everything()
    started = not os.read(failed, 1)
    if started:
        os.write(status_fd, json.dumps({"exit-code": code}).encode() + b"\n")
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main())
