"""Confine a supervisor without namespaces, and kill everything below it at the end. Standard library only.

    artoo ── control socket ──► keeper ──► supervisor (confined) ──► commands (inherit the confinement)
                                  ▲                                     │
                                  └───── seccomp user notification ─────┘

    python -I -S keeper.py CONFIG_FD CONTROL_FD SUPERVISOR_FD

CONFIG_FD gives one JSON object (`landlock.Plan`). CONTROL_FD is a socket: the keeper writes one JSON line, either
`{"supervisor": PID}` or `{"error": TEXT}`, and ends when its other end is closed, so also when artoo is killed.
SUPERVISOR_FD is passed on to the supervisor.

With Landlock, the keeper also performs the system calls that Landlock cannot restrict by path (`broker`).
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import json
import os
import select
import signal
import socket
import struct
import sys
import time
from typing import Any, NoReturn

_LIBC = ctypes.CDLL(None, use_errno=True)
_SET_DEATH_SIGNAL, _SET_SUBREAPER, _NO_NEW_PRIVILEGES, _DROP_BOUND = 1, 36, 38, 24
_ROOT_KEEPS = 1 << 0 | 1 << 1 | 1 << 3 | 1 << 4  # CHOWN, DAC_OVERRIDE, FOWNER, FSETID

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_EXECUTE, _WRITE, _READ, _LIST = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_MAKE_CHARACTER_DEVICE, _MAKE_BLOCK_DEVICE, _TRUNCATE, _IOCTL = 1 << 6, 1 << 11, 1 << 14, 1 << 15
_ALL_TCP, _ALL_SCOPES = 0x3, 0x3
_RIGHTS_ON_FILES = _EXECUTE | _WRITE | _READ | _TRUNCATE | _IOCTL

_SECCOMP, _SET_FILTER = {"x86_64": 317, "aarch64": 277}, 1
_NEW_LISTENER, _WAIT_KILLABLE = 1 << 3, 1 << 5

_GIVE_UP_SECONDS = 5.0
"""How long the end waits for killed processes: one in an uninterruptible sleep must not keep artoo waiting."""


def _check(result: int, what: str) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")
    return result


def _prctl(option: int, value: int) -> None:
    _check(_LIBC.prctl(option, value, 0, 0, 0), f"prctl {option}")


# --- Landlock ---------------------------------------------------------------------------------------------------


def landlock_version() -> int:
    """Return the kernel's Landlock version, 0 if it has none or has it switched off."""
    return max(0, _LIBC.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), 1))


def restrict_files(readable: list[str], listable: list[str], writable: list[str], devices: list[str]) -> None:
    """Allow to read and execute below `readable`, to list below `listable`, and to change files below `writable`.

    All else is refused for this process and its descendants, for ever. TCP, signals to other processes and abstract
    sockets are refused as well where the kernel knows how.
    """
    version = landlock_version()
    if version == 0:
        raise OSError("the kernel has no Landlock, or it is switched off")
    rights = _known_rights(version)
    size = 8 if version < 4 else 16 if version < 6 else 24
    attributes = struct.pack("QQQ", rights, _ALL_TCP, _ALL_SCOPES)[:size]
    ruleset = _check(_LIBC.syscall(_CREATE_RULESET, attributes, ctypes.c_size_t(size), 0), "landlock ruleset")
    change = rights & ~(_MAKE_CHARACTER_DEVICE | _MAKE_BLOCK_DEVICE)
    groups = (
        (readable, _EXECUTE | _READ | _LIST),
        (listable, _LIST),
        (writable, change),
        (devices, _READ | _WRITE | _IOCTL),
    )
    for paths, access in groups:
        for path in paths:
            _allow(ruleset, path, access & rights)
    _prctl(_NO_NEW_PRIVILEGES, 1)
    _check(_LIBC.syscall(_RESTRICT_SELF, ruleset, 0), "landlock restrict")
    os.close(ruleset)


def _known_rights(version: int) -> int:
    newest = 13 if version < 2 else 14 if version < 3 else 15 if version < 5 else 16
    return (1 << newest) - 1


def _allow(ruleset: int, path: str, access: int) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:  # removed meanwhile, or not visible to this user: then nothing there is allowed
        return
    try:
        if not os.path.isdir(f"/proc/self/fd/{descriptor}"):
            access &= _RIGHTS_ON_FILES
        rule = struct.pack("=Qi", access, descriptor)
        _check(_LIBC.syscall(_ADD_RULE, ruleset, 1, rule, 0), f"landlock rule for {path}")
    finally:
        os.close(descriptor)


def _drop_capabilities(kept: int) -> None:
    """Give up all capabilities outside the mask `kept`; no later exec brings one back."""
    _prctl(_NO_NEW_PRIVILEGES, 1)
    for capability in range(64):
        if not kept >> capability & 1 and _LIBC.prctl(_DROP_BOUND, capability, 0, 0, 0) < 0:
            break  # the kernel knows no higher one
    header, held = struct.pack("Ii", 0x20080522, 0), ctypes.create_string_buffer(24)
    _check(_LIBC.capget(header, held), "capget")
    permitted = struct.unpack("6I", held.raw)[1] & kept
    _check(_LIBC.capset(header, struct.pack("6I", permitted, permitted, 0, 0, 0, 0)), "capset")


# --- the filter -------------------------------------------------------------------------------------------------


def _install_filter(program: bytes) -> int:
    """Install a seccomp filter and return the descriptor that hears of the calls it passes on."""

    class Filter(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_void_p))

    steps = ctypes.create_string_buffer(program, len(program))
    loaded = Filter(len(program) // 8, ctypes.addressof(steps))
    _prctl(_NO_NEW_PRIVILEGES, 1)
    number = _SECCOMP[os.uname().machine]
    # Without "wait killable" (Linux before 5.19) a signal that arrives meanwhile makes the command repeat the call.
    for flags in (_NEW_LISTENER | _WAIT_KILLABLE, _NEW_LISTENER):
        listener = _LIBC.syscall(number, _SET_FILTER, flags, ctypes.byref(loaded))
        if listener >= 0:
            return listener
    return _check(listener, "seccomp")


# --- the supervisor ---------------------------------------------------------------------------------------------


def _become_supervisor(config: dict[str, Any], supervisor_fd: int, report: socket.socket) -> NoReturn:
    """Confine this process and execute the supervisor; on failure, write the reason to `report`."""
    try:
        os.setsid()
        if sys.platform.startswith("linux"):
            _prctl(_SET_DEATH_SIGNAL, signal.SIGKILL)
            _prctl(_SET_SUBREAPER, 1)  # so that daemons of commands stay below the supervisor; kept by exec
        if config["mode"] == "landlock":
            if os.geteuid() == 0:
                _drop_capabilities(_ROOT_KEEPS)
            restrict_files(config["readable"], ["/"], config["writable"], config["devices"])
            listener = _install_filter(bytes.fromhex(config["filter"]))
            socket.send_fds(report, [b"."], [listener])
            os.close(listener)
        os.set_inheritable(supervisor_fd, True)
        os.execve(config["argv"][0], config["argv"], config["env"])
    except OSError as error:
        report.send(f"x{error}".encode())
    os._exit(126)


def _start_supervisor(config: dict[str, Any], control: int, supervisor_fd: int) -> tuple[int, int | None]:
    """Return the supervisor's pid and the filter's listener. Raises OSError with the reason if it did not start."""
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        ours.close()
        os.close(control)
        _become_supervisor(config, supervisor_fd, theirs)
    theirs.close()
    os.close(supervisor_fd)
    problem, listeners, _, _ = socket.recv_fds(ours, 4096, 1)  # empty as soon as exec closes the other end
    if listeners:
        problem = ours.recv(4096)
    ours.close()
    if problem or (config["mode"] == "landlock" and not listeners):
        raise OSError(problem.decode(errors="replace").lstrip("x") or "its first process was killed")
    return pid, listeners[0] if listeners else None


# --- the end ----------------------------------------------------------------------------------------------------


def descendants(of: int) -> list[int]:
    """Return all descendants of a process."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    parent = int(file.read().rpartition(b")")[2].split()[1])
            except OSError:  # ended meanwhile
                continue
            children.setdefault(parent, []).append(int(name))
    found: list[int] = []
    todo = [of]
    while todo:
        below = children.get(todo.pop(), [])
        found += below
        todo += below
    return found


def end_everything() -> None:
    """Kill and reap all descendants."""
    deadline = time.monotonic() + _GIVE_UP_SECONDS
    while time.monotonic() < deadline:
        stopped: set[int] = set()
        # All are stopped before the first is killed: a fork bomb would otherwise be faster than this loop.
        while new := set(descendants(os.getpid())) - stopped:
            _signal_all(new, signal.SIGSTOP)
            stopped |= new
        _signal_all(stopped, signal.SIGKILL)
        if _reap() is None:
            return
        time.sleep(0.002)


def _signal_all(pids: set[int], number: int) -> None:
    for pid in pids:
        with contextlib.suppress(OSError):  # it ended meanwhile
            os.kill(pid, number)


def _reap() -> set[int] | None:
    """Reap what has ended; None when no child is left."""
    reaped: set[int] = set()
    try:
        while pid := os.waitpid(-1, os.WNOHANG)[0]:
            reaped.add(pid)
    except ChildProcessError:
        return None
    return reaped


# --- main -------------------------------------------------------------------------------------------------------


def _load_broker() -> Any:
    """Load the module next to this file, whose folder is not on `sys.path`."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "broker.py")
    spec = importlib.util.spec_from_file_location("broker", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["broker"] = module
    spec.loader.exec_module(module)
    return module


def _ignore(number: int, frame: object) -> None:
    """Do nothing: without a handler the wakeup descriptor hears nothing."""


def _serve(control: int, supervisor: int, broker: Any) -> None:
    """Answer the filter's questions until artoo closes the control socket or the supervisor ends."""
    read, write = os.pipe()
    for descriptor in (read, write):
        os.set_blocking(descriptor, False)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, _ignore)
    poll = select.poll()
    for descriptor in (control, read, *([] if broker is None else [broker.listener])):
        poll.register(descriptor, select.POLLIN)
    while True:
        reaped = _reap()
        if reaped is None or supervisor in reaped:
            return
        ready = dict(poll.poll())
        if control in ready:
            return
        if read in ready:
            os.read(read, 4096)
        # Without a call to receive (when the last process has ended) receiving one would block on older kernels.
        if broker is not None and ready.get(broker.listener, 0) & select.POLLIN:
            broker.answer()


def main() -> int:
    config_fd, control, supervisor_fd = map(int, sys.argv[1:4])
    with open(config_fd, "rb") as file:
        config: dict[str, Any] = json.load(file)
    os.setsid()  # a Ctrl-C in the user's terminal is for artoo alone
    if sys.platform.startswith("linux"):
        _prctl(_SET_SUBREAPER, 1)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    try:
        supervisor, listener = _start_supervisor(config, control, supervisor_fd)
    except OSError as error:
        os.write(control, json.dumps({"error": str(error)}).encode() + b"\n")
        return 1
    try:
        os.write(control, json.dumps({"supervisor": supervisor}).encode() + b"\n")
        broker = None
        if listener is not None:
            calls = {int(number): name for number, name in config["calls"].items()}
            broker = _load_broker().Broker(listener, supervisor, config["writable"], calls)
        _serve(control, supervisor, broker)
    except OSError:  # artoo is gone
        pass
    finally:
        if sys.platform.startswith("linux"):
            end_everything()
        else:  # the supervisor kills its sessions when its own socket closes
            os.kill(supervisor, signal.SIGTERM)
    return 0


if __name__ == "__main__":
    sys.exit(main())
