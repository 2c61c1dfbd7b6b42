# ruff: noqa: E501
"""What a command could try to reach beyond its workspace. Data for `escape_victim.py`.

Each attempt is Python that runs inside. It prints THROUGH when it reached what it must not reach. What it did outside
(a pipe that was read, a file that changed) is looked at from there. `OUTSIDE`, `HOME`, `ARTOO` (a pid) are defined.
"""

from __future__ import annotations

PRELUDE = """
import ctypes, fcntl, glob, os, signal, socket, struct, subprocess, sys, threading, time
OUTSIDE, HOME, ARTOO, MARK = sys.argv[1], sys.argv[2], int(sys.argv[3]), 'escape_victim'
NAME = sys.argv[4]
libc = ctypes.CDLL(None, use_errno=True)
def through(*_):
    print('THROUGH', flush=True)
def opened(path, flags):
    os.close(os.open(path, flags)); through()
def call(number, *given):
    if libc.syscall(number, *given) >= 0: through()
def pipe(path, flags=os.O_WRONLY | os.O_NONBLOCK, **more):
    where = os.open(path, flags, **more)
    os.write(where, NAME.encode())
def groups():
    with open('/proc/self/mountinfo') as file:
        return [line.split()[4] for line in file if ' - cgroup' in line]
"""

ONE_BY_ONE = """
import json, os, select, signal, sys, traceback
for name, code in json.load(sys.stdin).items():
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        os.dup2(write, 1); os.dup2(os.open('/dev/null', os.O_RDWR), 2)
        os.close(read); os.close(write)
        sys.argv[4] = name
        try:
            exec(compile(code, name, 'exec'), {})
        except BaseException:
            os._exit(1)
        os._exit(0)
    os.close(write)
    said = b''
    while select.select([read], [], [], 2)[0] and (data := os.read(read, 4096)):
        said += data
    try:
        os.killpg(child, signal.SIGKILL)
    except OSError:
        pass
    os.waitpid(child, 0)
    os.close(read)
    if said:
        print(json.dumps([name, said.decode()]), flush=True)
"""
"""Runs the attempts of standard input, each in a process of its own."""

_SYSTEM_FILES = (
    "/proc/sys/kernel/core_pattern",
    "/proc/sys/kernel/modprobe",
    "/proc/sys/kernel/hostname",
    "/proc/sys/kernel/sysrq",
    "/proc/sys/fs/binfmt_misc/register",
    "/proc/sys/vm/drop_caches",
    "/proc/sys/user/max_user_namespaces",
    "/proc/self/root/proc/sys/kernel/core_pattern",
    "/proc/1/root/proc/sys/kernel/core_pattern",
    "/proc/sysrq-trigger",
    "/proc/1/mem",
    "/proc/1/setgroups",
    "/proc/self/uid_map",
    "/sys/kernel/uevent_helper",
    "/sys/kernel/mm/transparent_hugepage/enabled",
    "/sys/power/state",
    "/sys/fs/cgroup/cgroup.procs",
    "/sys/fs/cgroup/memory/release_agent",
    "/dev/kmsg",
    "/dev/mem",
    "/dev/sda",
    "/dev/fuse",
    "/dev/kvm",
    "/etc/passwd",
    "/usr/bin/env",
)
_NEW_FILES = ("/run/x", "/run/lock/x", "/dev/x", "/x", "/etc/x", "/usr/x", "/var/x", "/opt/x", "/proc/x", "/sys/x")

ATTEMPTS: dict[str, str] = {
    **{f"write {path}": f"opened({path!r}, os.O_WRONLY | os.O_NONBLOCK)" for path in _SYSTEM_FILES},
    **{f"make {path}": f"opened({path!r}, os.O_WRONLY | os.O_CREAT)" for path in _NEW_FILES},
    "make a directory in /run": "os.mkdir('/run/d'); through()",
    "make a directory in /dev": "os.mkdir('/dev/d'); through()",
    "truncate outside": "os.truncate(OUTSIDE + '/file', 0)",
    "append outside": "opened(OUTSIDE + '/file', os.O_WRONLY | os.O_APPEND)",
    "remove outside": "os.unlink(OUTSIDE + '/file')",
    "times outside": "os.utime(OUTSIDE + '/file', (1, 1)); through()",
    "mode outside": "os.chmod(OUTSIDE + '/file', 0o666); through()",
    "attribute outside": "os.setxattr(OUTSIDE + '/file', 'user.x', b'x'); through()",
    "owner outside": "os.chown(OUTSIDE + '/file', os.getuid(), os.getgid()); through()",
    "read what is closed": "opened(HOME + '/.closed/key', os.O_RDONLY)",
    "write what is closed": "opened(HOME + '/.closed/key', os.O_WRONLY)",
    "make among what is closed": "opened(HOME + '/.closed/new', os.O_WRONLY | os.O_CREAT)",
    "link from outside": "os.link(OUTSIDE + '/file', HOME + '/project/hard'); opened('hard', os.O_WRONLY)",
    "pipe outside": "pipe(OUTSIDE + '/pipe')",
    "pipe outside, both ways": "pipe(OUTSIDE + '/pipe', os.O_RDWR)",
    "pipe outside, through a link": "os.symlink(OUTSIDE + '/pipe', 'to'); pipe('to')",
    "pipe outside, through the root of a process": "pipe('/proc/self/root' + OUTSIDE + '/pipe')",
    "pipe outside, through the first process": "pipe('/proc/1/root' + OUTSIDE + '/pipe')",
    "pipe outside, by a path descriptor": "pipe('/proc/self/fd/%d' % os.open(OUTSIDE + '/pipe', os.O_PATH))",
    "pipe outside, reopened": "pipe('/proc/self/fd/%d' % os.open(OUTSIDE + '/pipe', os.O_RDONLY | os.O_NONBLOCK))",
    "pipe outside, by another program": "subprocess.run(['sh', '-c', 'timeout 1 tee %s/pipe' % OUTSIDE],"
    " input=NAME.encode(), stdout=-3)",
    "pipe outside, from a thread": "t = threading.Thread(target=lambda: pipe(OUTSIDE + '/pipe')); t.start(); t.join()",
    "pipe outside, orphaned": "os.fork() or (os.setsid(), os.fork() or pipe(OUTSIDE + '/pipe')); time.sleep(.2)",
    "pipe outside, moved in": "os.rename(OUTSIDE + '/pipe', 'pipe-here'); pipe('pipe-here')",
    "pipe outside, linked in": "os.link(OUTSIDE + '/pipe', 'pipe-here'); pipe('pipe-here')",
    "pipe in the home": "pipe(HOME + '/pipe')",
    "pipe in the project": "pipe('pipe')",
    "pipe in the project, linked": "os.link('pipe', 'linked'); pipe('linked', os.O_RDWR)",
    "service outside": "s = socket.socket(socket.AF_UNIX); s.connect(OUTSIDE + '/service'); s.send(NAME.encode())",
    "service in the home": "s = socket.socket(socket.AF_UNIX); s.connect(HOME + '/service'); s.send(NAME.encode())",
    "datagram to a service": "socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(NAME.encode(),"
    " OUTSIDE + '/datagrams')",
    "pair to a service": "a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM);"
    " a.connect(OUTSIDE + '/datagrams'); a.send(NAME.encode())",
    "sequenced pair to a service": "a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET);"
    " a.connect(OUTSIDE + '/datagrams'); a.send(NAME.encode())",
    "stream pair to a service": "a, b = socket.socketpair(); a.connect(OUTSIDE + '/service'); a.send(NAME.encode())",
    "abstract service": "socket.socket(socket.AF_UNIX).connect('\\0artoo-escape'); through()",
    "packet socket": "socket.socket(socket.AF_PACKET, socket.SOCK_RAW); through()",
    "vsock": "socket.socket(40, socket.SOCK_STREAM); through()",
    "old socket call on 32 bits": "call(0x40000000 + 41, 1, 1, 0)",
    "device in the home": "len(os.read(os.open(HOME + '/zero', os.O_RDONLY), 1)) and through()",
    "device in the project": "len(os.read(os.open('zero', os.O_RDONLY), 1)) and through()",
    "device outside": "len(os.read(os.open(OUTSIDE + '/zero', os.O_RDONLY), 1)) and through()",
    "device outside, written": "opened(OUTSIDE + '/zero', os.O_WRONLY)",
    "own device": "os.mknod('own', 0o20666, os.makedev(1, 5)); len(os.read(os.open('own', os.O_RDONLY), 1)) and through()",
    "own device in /dev/shm": "os.mknod('/dev/shm/own', 0o20666, os.makedev(1, 5)); through()",
    "mount": "call(165, b'none', OUTSIDE.encode(), b'tmpfs', 0, 0)",
    "remount writable": "call(165, b'none', b'/proc', 0, 0x20, 0)",
    "mount attributes": "call(442, -100, b'/', 0x8000, struct.pack('QQQQ', 0, 1, 0, 0), 32)",
    "new file system": "call(430, b'tmpfs', 0)",
    "namespaces of its own": "call(272, 0x10020000)",
    "namespaces by clone3": "call(435, struct.pack('11Q', 0x10000000, *[0] * 10), 88)",
    "namespaces of the first process": "call(308, os.open('/proc/1/ns/mnt', os.O_RDONLY), 0)",
    "root elsewhere, to leave it": "os.chroot('.'); os.chdir('../../../../../../..'); opened('etc/passwd', os.O_WRONLY)",
    "by handle": "call(304, -100, struct.pack('II8s', 8, 1, b''), 2)",
    "signal to artoo": "os.kill(ARTOO, 0); open('/proc/%d/environ' % ARTOO).read(); through()",
    "limits of artoo": "MARK in open('/proc/%d/cmdline' % ARTOO).read()"
    " and call(302, ARTOO, 4, 0, ctypes.create_string_buffer(16))",
    "priority of artoo": "os.setpriority(os.PRIO_PROCESS, ARTOO, 5); MARK in open('/proc/%d/cmdline' % ARTOO).read()"
    " and through()",
    "processors of artoo": "os.sched_setaffinity(ARTOO, {0}); MARK in open('/proc/%d/cmdline' % ARTOO).read()"
    " and through()",
    "scheduling of artoo": "os.sched_setscheduler(ARTOO, os.SCHED_IDLE, os.sched_param(0));"
    " MARK in open('/proc/%d/cmdline' % ARTOO).read() and through()",
    "memory of artoo": "MARK in open('/proc/%d/cmdline' % ARTOO).read() and opened('/proc/%d/mem' % ARTOO, os.O_RDONLY)",
    "variables of artoo": "MARK in open('/proc/%d/cmdline' % ARTOO).read() and opened('/proc/%d/environ' % ARTOO, os.O_RDONLY)",
    "files of artoo": "MARK in open('/proc/%d/cmdline' % ARTOO).read() and os.readlink('/proc/%d/fd/1' % ARTOO)"
    " and through()",
    "trace of artoo": "MARK in open('/proc/%d/cmdline' % ARTOO).read() and call(101, 16, ARTOO, 0, 0)",
    "handle on artoo": "w = os.pidfd_open(ARTOO); MARK in open('/proc/%d/cmdline' % ARTOO).read()"
    " and (signal.pidfd_send_signal(w, 0), through())",
    "descriptor of artoo": "MARK in open('/proc/%d/cmdline' % ARTOO).read() and call(438, os.pidfd_open(ARTOO), 1, 0)",
    "signals of a file to artoo": "MARK in open('/proc/%d/cmdline' % ARTOO).read() and"
    " (fcntl.fcntl(os.open('made', os.O_RDWR | os.O_CREAT), fcntl.F_SETOWN, ARTOO), through())",
    "signals of a socket to artoo": "a, b = socket.socketpair(); MARK in open('/proc/%d/cmdline' % ARTOO).read() and"
    " (fcntl.ioctl(a, 0x8901, struct.pack('i', ARTOO)), through())",
    "kernel ring": "call(103, 3, ctypes.create_string_buffer(64), 64)",
    "keyring": "call(248, b'user', b'artoo', b'x', 1, -3)",
    "programs for the kernel": "call(321, 0, struct.pack('IIII', 1, 4, 4, 1) + bytes(100), 116)",
    "performance events": "call(298, bytes(128), 0, -1, -1, 0)",
    "faults in userland": "call(323, 1)",
    "ring of calls": "call(425, 1, bytes(120))",
    "module": "call(313, 0, b'', 0)",
    "other kernel": "call(320, -1, -1, 0, b'', 0)",
    "restart": "call(169, 0xfee1dead, 672274793, 0, 0)",
    "name of the machine": "socket.sethostname('taken')",
    "capabilities": "held = [one.split() for one in open('/proc/self/status') if one[:6] in ('CapPrm', 'CapEff')];"
    " any(int(one, 16) & ~(0 if os.getuid() else 0x1b) for _, one in held) and through()",
    "rights of a capability": "call(126, struct.pack('Ii', 0x20080522, 0), struct.pack('6I', 0x200000, 0x200000, 0, 0, 0, 0))",
    **{
        f"control groups, {name}": f"for g in groups():\n for d in [g, *glob.glob(g + '/*/')]:\n  try: opened(d + '/{name}', os.O_WRONLY)\n  except OSError: pass"
        for name in ("cgroup.procs", "cgroup.kill", "release_agent", "memory.max")
    },
    "control groups, a new one": "for g in groups():\n try: os.mkdir(g + '/artoo-escape'); through(); os.rmdir(g + '/artoo-escape')\n except OSError: pass",
    "control groups, born into one": "for g in groups():\n w = os.open(g, os.O_RDONLY)\n"
    " r = libc.syscall(435, struct.pack('11Q', 1 << 33, 0, 0, 0, 17, 0, 0, 0, 0, 0, w), ctypes.c_size_t(88))\n"
    " if r == 0: os._exit(0)\n if r > 0: through()",
    "control groups, mounted": "call(165, b'none', (HOME + '/project').encode(), b'cgroup2', 0, 0)",
    "typing on the terminal": "fcntl.ioctl(os.open('/dev/tty', os.O_RDWR), 0x5412, b'x'); through()",
    "typing on what is read": "fcntl.ioctl(0, 0x5412, b'x'); through()",
    "disk priority of the user": "MARK in open('/proc/%d/cmdline' % ARTOO).read() and call(251, 3, os.getuid(), 3 << 13)",
    "pages of artoo": "MARK in open('/proc/%d/cmdline' % ARTOO).read() and call(279, ARTOO, 0, 0, 0, 0, 0)",
    "program with its owner's rights": "p = 'suid'; open(p, 'wb').write(open('/usr/bin/id', 'rb').read()); os.chmod(p, 0o4755);"
    " os.chown(p, 0, 0); b'euid=' in subprocess.run(['./suid'], capture_output=True).stdout and through()",
}
"""Ways out. `call` takes numbers of x86_64."""
