"""The program in the sandbox that starts, reports and kills commands, with its limits on files and timers.

This is a separate program. It uses only the standard library, and the modules that `starting.SUPERVISOR` names.

Its first argument, CHANNEL, is the descriptor number of one end of a UNIX socket that preserves packet boundaries
(SOCK_SEQPACKET, or SOCK_DGRAM on macOS, which lacks SOCK_SEQPACKET). The other arguments are options:
`process-limit=N`; `writable=DIRECTORY` (may be repeated; Landlock then denies opening any other path for writing);
`descriptors=yes` (send descriptors of the root directory and the namespaces); `environment=N` (the descriptor of a
file with variables, NAME=VALUE, for every command); `confinement=N` (the descriptor of the plan that confines each
command before it runs, see `confinement`).

In bubblewrap's sandbox the supervisor is process 1, and commands cannot attack it. The kernel drops every signal
from inside for which it has no handler. The supervisor is not dumpable (no ptrace, no /proc/1/mem or /proc/1/fd),
and commands inherit none of its descriptors. When artoo closes the socket or dies, the supervisor exits, and the
kernel kills every other process of the sandbox. With other backends it is an ordinary process that is not confined,
and kills its descendants before it exits.

Packets are lists of fields, separated by NUL bytes, because neither arguments nor variables can contain a NUL byte:

    artoo → supervisor   start ID CWD FILE_BYTES MODE COUNT ARGUMENT... NAME=VALUE...   + descriptors
                         signal ID SIGNAL
                         list ID
                         listen ID
    supervisor → artoo   ready PID                                     + root, mount namespace, pidfd
                         started ID                                    + pseudo-terminal
                         failed ID ERRNO WHAT
                         ended ID STATUS LEFT...
                         listed ID LEFT...
                         listening ID                                  + socket

Variables of a request override those that apply to every command.

MODE is `pipes` (with descriptors of standard output and error, and of the input unless it is /dev/null) or
`terminal` (without descriptors, because the supervisor opens a pseudo-terminal and sends its controlling side).
The suffix `-unconfined` exempts a command from the sandbox's confinement plan. A request that does not fit into a
packet is `start ID memory`, and its last descriptor is a file with the fields from CWD on. LEFT are the names of
processes that the command left running. SIGNAL goes to all processes of a command. `listen` opens a socket that
listens on a fresh port of the sandbox's own 127.0.0.1.

Each import delays a task's first command: `signal` takes 4 ms, `json` 8 ms.
"""

from __future__ import annotations

import _socket
import ctypes
import errno
import os
import resource
import select
import struct
import sys
import time

from artoo.sandbox.supervisor.processes import MARK, descendants, kill, members, name_of, read_all
from artoo.sandbox.supervisor.restricting import restrict_writes

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from collections.abc import Callable

    from artoo.sandbox.supervisor.confinement import Confinement
else:
    import _signal

_SPAWN_AGAIN_AS_SCRIPT = errno.ENOEXEC
_NOT_FOUND = (errno.ENOENT, errno.ENOTDIR)
_SET_DEATH_SIGNAL = 1
DEFAULT_SIGNALS = tuple(_signal.valid_signals() - {_signal.SIGKILL, _signal.SIGSTOP})

Fields = list[bytes]

_MOST_PACKET, _MOST_DESCRIPTORS = 96 * 1024, 4
"""The limits for one packet: its bytes and its descriptors. A larger buffer would have to be mapped again for each
packet."""
_MOST_NAMED = 200
"""The maximum number of a command's processes that one answer names. More would not fit into a packet."""
_KILL_ROUNDS = 20
"""The number of times that a kill looks for new processes of a command, on systems where it cannot stop all of them
first."""
_GIVE_UP_SECONDS = 5.0
"""Number of seconds that the exit waits for killed processes, because a process in uninterruptible sleep must not
block artoo."""
_WAITING = 128
_MOST_OPEN_FILES, _MOST_TIMERS = 65_536, 8_192
"""Limits on kernel objects whose memory is not counted for any process. Queued signals and timers share one
limit."""
_SET_DUMPABLE, _SET_SUBREAPER = 4, 36
_IGNORED = (_signal.SIGINT, _signal.SIGTERM, _signal.SIGHUP, _signal.SIGQUIT, _signal.SIGTTOU, _signal.SIGTTIN)
"""Signals that are ignored. A signal to a whole terminal or process group must not end the supervisor before its
commands. Process 1 is immune to them in any case."""


def main() -> None:
    """Serve one socket until artoo closes it."""
    options = [(name, value) for name, _, value in (argument.partition("=") for argument in sys.argv[2:])]
    single = dict(options)
    _protect()
    channel = _socket.socket(fileno=int(sys.argv[1]))
    confinement = None
    if "confinement" in single:
        # imported only when it is needed, because importing takes time
        from artoo.sandbox.supervisor.confinement import Confinement

        confinement = Confinement.read(int(single["confinement"]))
    given = read_all(int(single["environment"])).split(b"\0") if "environment" in single else []
    keep = channel.fileno()
    # bubblewrap passes on the descriptors that it inherited. Commands must not get any of them.
    os.closerange(3, keep)
    os.closerange(keep + 1, 1 << 16)
    os.set_inheritable(keep, False)
    if "process-limit" in single:
        _limit(resource.RLIMIT_NPROC, int(single["process-limit"]))
    if "writable" in single:
        restrict_writes([value for name, value in options if name == "writable"])
    supervisor = Supervisor(channel, confinement, _variables(given))
    supervisor.serve(describe=single.get("descriptors") == "yes")
    supervisor.end()


def _protect() -> None:
    """Keep commands from reading this process and from sending it signals. Limit the resources that they can
    use."""
    if sys.platform == "linux":
        if ctypes.CDLL(None).prctl(_SET_DUMPABLE, 0, 0, 0, 0) != 0:
            raise OSError("the supervisor cannot be protected from commands")
        # so that background processes of commands become children of this process
        ctypes.CDLL(None).prctl(_SET_SUBREAPER, 1, 0, 0, 0)
        _limit(resource.RLIMIT_SIGPENDING, _MOST_TIMERS)
    # Python installs a handler for SIGINT, and even process 1 receives a signal for which it has a handler.
    for signal in DEFAULT_SIGNALS:
        if signal not in (_signal.SIGPIPE, _signal.SIGXFSZ):
            _signal.signal(signal, _signal.SIG_IGN if signal in _IGNORED else _signal.SIG_DFL)
    _signal.signal(_signal.SIGXFSZ, _signal.SIG_IGN)
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_NOFILE, _MOST_OPEN_FILES)


def _limit(kind: int, most: int) -> None:
    """Limit every process of the sandbox permanently, unless its limit is already lower."""
    soft, hard = resource.getrlimit(kind)
    most = most if hard < 0 else min(most, hard)
    resource.setrlimit(kind, (most if soft < 0 else min(soft, most), most))


class Supervisor:
    """The commands of one sandbox, by artoo's command id and by process id."""

    def __init__(
        self, channel: _socket.socket, confinement: Confinement | None, environment: dict[bytes, bytes]
    ) -> None:
        self._channel = channel
        self._confinement = confinement
        self._environment = environment
        self._no_input = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        self._poll = select.poll()
        self._ids: dict[int, bytes] = {}
        self._pids: dict[bytes, int] = {}

    def serve(self, *, describe: bool) -> None:
        """Answer requests and report ended commands until the socket is closed."""
        awake, wake = os.pipe()
        os.set_blocking(wake, False)
        _signal.signal(_signal.SIGCHLD, _wake_up)  # without a handler, nothing is written to the wakeup descriptor
        _signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        self._send([b"ready", b"%d" % os.getpid()], _described() if describe else [])
        self._poll.register(self._channel.fileno(), select.POLLIN)
        self._poll.register(awake, select.POLLIN)
        while True:
            for descriptor, event in self._poll.poll():
                if descriptor == awake:
                    os.read(awake, 1 << 16)  # this reads everything, because a pipe cannot hold more
                    self._reap()
                elif descriptor != self._channel.fileno():
                    self._judge(descriptor, event)
                elif not self._answer():
                    return

    def end(self) -> None:
        """Kill all descendants of this process. For process 1 of a namespace, the kernel does this."""
        deadline = time.monotonic() + _GIVE_UP_SECONDS
        while os.getpid() != 1 and time.monotonic() < deadline:
            frozen: set[int] = set()
            # All are stopped before the first is killed, because a fork bomb would otherwise be faster than this
            # loop.
            while new := descendants() - frozen:
                for pid in new:
                    kill(pid, _signal.SIGSTOP)
                frozen |= new
            for pid in frozen:
                kill(pid, _signal.SIGKILL)
            for pid in self._ids if sys.platform != "linux" else ():
                kill(-pid, _signal.SIGKILL)  # macOS has no /proc, so the known process groups are killed instead
            if self._reap():
                return
            time.sleep(0.002)

    def _judge(self, listener: int, event: int) -> None:
        """Decide about a system call of a confined command. When the last process of the command has ended, close
        the listener."""
        assert self._confinement is not None
        if event & select.POLLIN:
            self._confinement.answer(listener)
        else:
            self._poll.unregister(listener)
            os.close(listener)

    def _answer(self) -> bool:
        """Receive and execute one request. Returns False if artoo has closed the socket."""
        room = _socket.CMSG_SPACE(4 * _MOST_DESCRIPTORS)
        try:
            packet, rights, _, _ = self._channel.recvmsg(_MOST_PACKET, room)
        except ConnectionResetError:
            return False
        if not packet:
            return False
        descriptors = [number for _, _, data in rights for (number,) in struct.iter_unpack("i", data)]
        for descriptor in descriptors:
            os.set_inheritable(descriptor, False)
        verb, process_id, *fields = packet.split(b"\0")
        try:
            if verb == b"start":
                self._start(process_id, fields, descriptors)
            elif verb == b"signal":
                self._signal(process_id, int(fields[0]))
            elif verb == b"listen":
                self._listen(process_id)
            elif verb == b"list":
                names = map(name_of, sorted(self._members(process_id))[:_MOST_NAMED])
                self._send([b"listed", process_id, *names])
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        return True

    def _start(self, process_id: bytes, fields: Fields, descriptors: list[int]) -> None:
        if fields == [b"memory"]:
            *descriptors, file = descriptors
            fields = read_all(file).split(b"\0")
        cwd, file_bytes, mode, count, *rest = fields
        argv, variables = rest[: int(count)], rest[int(count) :]
        environment = {**self._environment, **_variables(variables), MARK: process_id}
        if mode.startswith(b"pipes"):
            output, error, given = (*descriptors, self._no_input)[:3]
            descriptors = [given, output, error]
        passed: list[int] = []
        try:
            os.chdir(cwd)
            limit_files(int(file_bytes))
            if mode == b"pipes" and os.getpid() == 1:
                pid = spawn(argv, environment, descriptors)
            else:
                passed, pid = self._fork(argv, environment, mode, descriptors)
        except CannotRun as problem:
            self._report_as_shell(process_id, problem, descriptors)
            return
        except OSError as error:
            what = cwd if error.filename == cwd else os.fsencode(error.filename or argv[0])
            self._send([b"failed", process_id, b"%d" % (error.errno or 0), what])
            return
        finally:
            os.chdir("/")
        self._ids[pid], self._pids[process_id] = process_id, pid
        self._send([b"started", process_id], passed)
        for descriptor in passed:
            os.close(descriptor)

    def _fork(
        self, argv: Fields, environment: dict[bytes, bytes], mode: bytes, descriptors: list[int]
    ) -> tuple[list[int], int]:
        """Start a program that posix_spawn cannot start, because it needs a controlling terminal or a confinement.

        Return the controlling side of its pseudo-terminal (if it has one) and its process id.
        """
        kind, _, free = mode.partition(b"-")
        controller, terminal = os.openpty() if kind == b"terminal" else (-1, -1)
        confinement = None if free else self._confinement
        ours, theirs = _socket.socketpair()
        try:
            pid = os.fork()
            if pid == 0:
                become(argv, environment, descriptors, terminal, theirs, confinement)
            theirs.close()
            listener = confinement.listener(ours) if confinement is not None else None
            if listener is not None:
                self._poll.register(listener, select.POLLIN)
        except OSError:
            if controller >= 0:
                os.close(controller)
            raise
        finally:
            ours.close()
            theirs.close()
            if terminal >= 0:
                os.close(terminal)
        return [controller] if controller >= 0 else [], pid

    def _listen(self, process_id: bytes) -> None:
        listening = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
        try:
            listening.bind(("127.0.0.1", 0))
            listening.listen(_WAITING)
            self._send([b"listening", process_id], [listening.fileno()])
        except OSError as error:
            self._send([b"failed", process_id, b"%d" % (error.errno or 0), b"a socket that listens"])
        finally:
            listening.close()

    def _report_as_shell(self, process_id: bytes, problem: CannotRun, descriptors: list[int]) -> None:
        """Report that a program cannot be run, as a shell does: on standard error, and by exit code 127 or 126."""
        self._send([b"started", process_id])
        if len(descriptors) >= 3:
            os.write(descriptors[2], problem.message)
        self._send([b"ended", process_id, b"%d" % (problem.exit_code << 8)])

    def _members(self, process_id: bytes) -> set[int]:
        """Return the running processes of a command, even after the command itself ended."""
        pid = self._pids.get(process_id, 0)
        if self._ids.get(pid, process_id) != process_id:
            pid = 0  # the kernel has given the same process id to a later command
        return members(pid, process_id)

    def _signal(self, process_id: bytes, signal: int) -> None:
        """Send a signal to all processes of a command.

        Before a SIGKILL, every process in the sandbox is stopped. A command that forks endlessly would otherwise be
        faster than this loop. The kernel stops all processes in one step, including those that are just being
        forked. A process that is just being forked becomes visible a moment later, so the loop repeats until it
        finds no new process.
        """
        # outside of a namespace, -1 would mean all processes of the user
        freeze = signal == _signal.SIGKILL and os.getpid() == 1
        if freeze:
            kill(-1, _signal.SIGSTOP)
        reached: set[int] = set()
        for _ in range(_KILL_ROUNDS):
            new = self._members(process_id) - reached
            for member in new:
                kill(member, signal)
            reached |= new
            if not new or signal != _signal.SIGKILL:
                break
        if freeze:
            kill(-1, _signal.SIGCONT)

    def _reap(self) -> bool:
        """Reap every process that has ended, and report the end of the commands that artoo started.

        Return True if this process has no child left.
        """
        ended: list[tuple[bytes, int]] = []
        is_alone = False
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                is_alone = True
                break
            if pid == 0:
                break
            if pid in self._ids:
                ended.append((self._ids[pid], status))
                del self._ids[pid]
        for process_id, status in ended:
            # On Linux orphans become children of the supervisor, because it is process 1 or a subreaper.
            left = [] if is_alone and sys.platform == "linux" else sorted(self._members(process_id))
            self._send([b"ended", process_id, b"%d" % status, *map(name_of, left[:_MOST_NAMED])])
        return is_alone

    def _send(self, fields: Fields, descriptors: list[int] | None = None) -> None:
        rights = struct.pack(f"{len(descriptors)}i", *descriptors) if descriptors else b""
        ancillary = [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, rights)] if rights else []
        try:
            self._channel.sendmsg([b"\0".join(fields)], ancillary)
        except (BrokenPipeError, ConnectionResetError):
            return  # artoo no longer exists, which the loop notices next


def _variables(listed: Fields) -> dict[bytes, bytes]:
    return dict(variable.split(b"=", 1) for variable in listed)  # pyright: ignore[reportArgumentType]


def _wake_up(number: int, frame: object) -> None:
    """Do nothing, because Python has already written a byte to the wakeup descriptor."""


def _described() -> list[int]:
    """Return descriptors of the root directory, the mount namespace, and this process."""
    named = ("/", "/proc/self/ns/mnt")
    return [*(os.open(path, os.O_RDONLY | os.O_CLOEXEC) for path in named), os.pidfd_open(os.getpid())]


# --- starting a program, found by the rules of a shell ------------------------------------------------------------


class CannotRun(Exception):
    """Raised for a program that is missing or cannot be executed."""

    def __init__(self, message: bytes, exit_code: int) -> None:
        super().__init__(message)
        self.message = message
        self.exit_code = exit_code


def spawn(argv: Fields, environment: dict[bytes, bytes], descriptors: list[int]) -> int:
    """Start a program in its own session with three descriptors and no others.

    posix_spawn shares this process's memory until the program runs (vfork), so it takes 0.4 ms; fork takes 3 ms.
    All other descriptors are closed when the program is executed. The program inherits this process's working
    directory and limits.
    """
    actions = [(os.POSIX_SPAWN_DUP2, descriptor, number) for number, descriptor in enumerate(descriptors[:3])]

    def run(path: bytes, argv: Fields) -> int:
        return os.posix_spawn(
            path, argv, environment, file_actions=actions, setsid=True, setsigdef=DEFAULT_SIGNALS, setsigmask=()
        )

    return _first_that_runs(argv, environment, run)


def become(
    argv: Fields,
    environment: dict[bytes, bytes],
    descriptors: list[int],
    terminal: int,
    report: _socket.socket,
    confinement: Confinement | None,
) -> None:
    """Execute the program in the process that was forked. `terminal`: a descriptor of the command's terminal, or -1
    if it has none."""
    try:
        _signal.set_wakeup_fd(-1)
        os.setsid()
        if terminal >= 0:
            import fcntl
            import termios

            fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
            descriptors = [terminal] * 3
        for number, descriptor in enumerate(descriptors[:3]):
            os.dup2(descriptor, number)
        for signal in DEFAULT_SIGNALS:
            _signal.signal(signal, _signal.SIG_DFL)
        if sys.platform == "linux" and os.getppid() != 1:
            ctypes.CDLL(None).prctl(_SET_DEATH_SIGNAL, _signal.SIGKILL, 0, 0, 0)
        if confinement is not None:
            confinement.confine(report)
        report.close()
        _first_that_runs(argv, environment, lambda path, argv: os.execve(path, argv, environment))
    except CannotRun as problem:
        os.write(2, problem.message)
        os._exit(problem.exit_code)
    except OSError as error:
        os.write(2, b"%s: %s\n" % (argv[0], os.fsencode(error.strerror or "")))
    os._exit(126)


def _first_that_runs(argv: Fields, environment: dict[bytes, bytes], run: Callable[[bytes, Fields], int]) -> int:
    """Call `run(path, argv)` with each path at which a shell looks for the program, until one of them can be
    executed."""
    found: OSError | None = None
    for path in _candidates(argv[0], environment.get(b"PATH", os.defpath.encode())):
        try:
            return run(path, argv)
        except OSError as error:
            if error.errno == _SPAWN_AGAIN_AS_SCRIPT:  # a script without a first line that begins with "#!"
                return run(b"/bin/sh", [b"sh", path, *argv[1:]])
            if error.errno in _NOT_FOUND and not os.path.lexists(path):
                continue
            if error.errno not in (*_NOT_FOUND, errno.EACCES, errno.E2BIG):
                raise
            found = error
    if found is None:
        raise CannotRun(b"%s: command not found\n" % argv[0], 127)
    raise CannotRun(b"%s: %s\n" % (argv[0], os.fsencode(found.strerror or "")), 126)


def limit_files(most_bytes: int) -> None:
    """Limit the size of files that the next command can write. The limit is soft, because a hard limit could never
    be raised."""
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes if hard < 0 else min(most_bytes, hard), hard))


def _candidates(program: bytes, path: bytes) -> Fields:
    if b"/" in program:
        return [program]
    return [(directory or b".") + b"/" + program for directory in path.split(b":")]
