# ruff: noqa: E501
"""What a command could try to reach beyond its view. Data for `edge_victim.py`; nothing here is run by the tests
themselves.

Each attempt is Python that runs inside. It says THROUGH when it reached what it must not reach; what it did outside
(a pipe that was read, a file that changed) is looked at from there. `OUTSIDE`, `HOME`, `ARTOO` (a pid) are defined.
"""

from __future__ import annotations

PRELUDE = """
import ctypes, fcntl, glob, mmap, resource, os, signal, socket, struct, subprocess, sys, threading, time
OUTSIDE, HOME, ARTOO, MARK = sys.argv[1], sys.argv[2], int(sys.argv[3]), 'edge_victim'
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
def held(*_):
    time.sleep(1.5); through()
def children(count, act):
    for _ in range(count):
        if os.fork() == 0:
            act(); time.sleep(3); os._exit(0)
    time.sleep(1.5)
    if os.waitpid(-1, os.WNOHANG)[0]: raise OSError('a child was refused by the kernel: nothing is held')
    through()
def full(count, act):
    read, write = os.pipe()
    for _ in range(count):
        if os.fork() == 0:
            act(); os.write(write, b'x'); time.sleep(15); os._exit(0)
    while count: count -= len(os.read(read, count))
    time.sleep(6); through()  # a look takes its time while sixty children keep the processors
MIB = 1 << 20
BLOCK = bytes(MIB)
def fill(where, count):
    for _ in range(count): os.write(where, BLOCK)
def memfd(count):
    where = os.memfd_create('x'); fill(where, count); return where
def unlinked(path, count):
    where = os.open(path, os.O_RDWR | os.O_CREAT); os.unlink(path); fill(where, count); return where
def mapped(where):
    try:
        return mmap.mmap(where, 4096)
    finally:
        os.close(where)
def sent(pair, where):
    socket.send_fds(pair, [b'x'], [where]); os.close(where)
def groups():
    with open('/proc/self/mountinfo') as file:
        return [line.split()[4] for line in file if ' - cgroup' in line]
def most(): resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(7)[1],) * 2)
def hidden(): libc.prctl(4, 0, 0, 0, 0)
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
"""Runs attempts of standard input inside, each in a process of its own."""

_SYSTEM_FILES = (
    "/proc/sys/kernel/core_pattern",
    "/proc/sys/kernel/modprobe",
    "/proc/sys/kernel/hostname",
    "/proc/sys/kernel/randomize_va_space",
    "/proc/sys/kernel/ns_last_pid",
    "/proc/sys/kernel/sysrq",
    "/proc/sys/kernel/panic",
    "/proc/sys/kernel/shmmax",
    "/proc/sys/kernel/msgmnb",
    "/proc/sys/kernel/poweroff_cmd",
    "/proc/sys/kernel/usermodehelper/bset",
    "/proc/sys/fs/binfmt_misc/register",
    "/proc/sys/fs/pipe-max-size",
    "/proc/sys/fs/suid_dumpable",
    "/proc/sys/vm/drop_caches",
    "/proc/sys/vm/overcommit_memory",
    "/proc/sys/net/ipv4/ip_forward",
    "/proc/sys/user/max_user_namespaces",
    "/proc/self/root/proc/sys/kernel/core_pattern",
    "/proc/self/cwd/../../../../../../../../proc/sys/kernel/core_pattern",
    "/proc/1/root/proc/sys/kernel/core_pattern",
    "/proc/thread-self/root/proc/sys/kernel/core_pattern",
    "/proc/sysrq-trigger",
    "/proc/irq/default_smp_affinity",
    "/proc/mtrr",
    "/proc/kcore",
    "/proc/kmsg",
    "/proc/timer_list",
    "/proc/fs/ext4",
    "/proc/pressure/memory",
    "/proc/1/mem",
    "/proc/1/setgroups",
    "/proc/self/uid_map",
    "/sys/kernel/uevent_helper",
    "/sys/kernel/mm/transparent_hugepage/enabled",
    "/sys/kernel/mm/ksm/run",
    "/sys/power/state",
    "/sys/fs/cgroup/cgroup.procs",
    "/sys/fs/cgroup/memory/release_agent",
    "/sys/fs/cgroup/cpu/release_agent",
    "/sys/fs/cgroup/memory/cgroup.procs",
    "/sys/fs/cgroup/unified/cgroup.procs",
    "/sys/fs/cgroup/devices/devices.allow",
    "/sys/block/vda/queue/scheduler",
    "/sys/module/kernel/parameters/panic",
    "/dev/kmsg",
    "/dev/mem",
    "/dev/port",
    "/dev/vda",
    "/dev/sda",
    "/dev/loop-control",
    "/dev/fuse",
    "/dev/kvm",
    "/dev/net/tun",
    "/dev/userfaultfd",
    "/dev/uinput",
    "/etc/passwd",
    "/etc/ld.so.preload",
    "/usr/bin/env",
)
_NEW_FILES = ("/run/x", "/run/lock/x", "/dev/x", "/x", "/etc/x", "/usr/x", "/var/x", "/opt/x", "/proc/x", "/sys/x")

EDGE: dict[str, str] = {
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
    "mode of what is closed": "os.chmod(HOME + '/.closed', 0o700); through()",
    "link from outside": "os.link(OUTSIDE + '/file', HOME + '/project/hard'); opened('hard', os.O_WRONLY)",
    "pipe outside": "pipe(OUTSIDE + '/pipe')",
    "pipe outside, both ways": "pipe(OUTSIDE + '/pipe', os.O_RDWR)",
    "pipe outside, append": "pipe(OUTSIDE + '/pipe', os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK)",
    "pipe outside, truncating": "pipe(OUTSIDE + '/pipe', os.O_WRONLY | os.O_TRUNC | os.O_NONBLOCK)",
    "pipe outside, through a link": "os.symlink(OUTSIDE + '/pipe', 'to'); pipe('to')",
    "pipe outside, through a linked directory": "os.symlink(OUTSIDE, 'dir'); pipe('dir/pipe')",
    "pipe outside, through the root of a process": "pipe('/proc/self/root' + OUTSIDE + '/pipe')",
    "pipe outside, through the first process": "pipe('/proc/1/root' + OUTSIDE + '/pipe')",
    "pipe outside, from its directory": "pipe('pipe', dir_fd=os.open(OUTSIDE, os.O_RDONLY | os.O_DIRECTORY))",
    "pipe outside, upwards": "pipe('../../outside/pipe')",
    "pipe outside, by a path descriptor": "pipe('/proc/self/fd/%d' % os.open(OUTSIDE + '/pipe', os.O_PATH))",
    "pipe outside, reopened": "pipe('/proc/self/fd/%d' % os.open(OUTSIDE + '/pipe', os.O_RDONLY | os.O_NONBLOCK))",
    "pipe outside, by another program": "subprocess.run(['sh', '-c', 'timeout 1 tee %s/pipe' % OUTSIDE],"
    " input=NAME.encode(), stdout=-3)",
    "pipe outside, from a thread": "t = threading.Thread(target=lambda: pipe(OUTSIDE + '/pipe')); t.start(); t.join()",
    "pipe outside, orphaned": "os.fork() or (os.setsid(), os.fork() or pipe(OUTSIDE + '/pipe')); time.sleep(.2)",
    "pipe outside, moved in": "os.rename(OUTSIDE + '/pipe', 'pipe-here'); pipe('pipe-here')",
    "pipe outside, linked in": "os.link(OUTSIDE + '/pipe', 'pipe-here'); pipe('pipe-here')",
    "pipe in a system directory": "pipe(OUTSIDE + '/deep/pipe')",
    "pipe in the home": "pipe(HOME + '/pipe')",
    "pipe in the home, both ways": "pipe(HOME + '/pipe', os.O_RDWR)",
    "pipe in the project": "pipe('pipe')",
    "pipe in the project, moved": "os.link('pipe', 'm'); os.rename('m', 'moved'); pipe('moved', os.O_RDWR)",
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
    "abstract service": "socket.socket(socket.AF_UNIX).connect('\\0artoo-edge'); through()",
    "packet socket": "socket.socket(socket.AF_PACKET, socket.SOCK_RAW); through()",
    "vsock": "socket.socket(40, socket.SOCK_STREAM); through()",
    "crypto socket": "socket.socket(38, socket.SOCK_SEQPACKET); through()",
    "old socket call on 32 bits": "call(0x40000000 + 41, 1, 1, 0)",
    "device in the home": "len(os.read(os.open(HOME + '/zero', os.O_RDONLY), 1)) and through()",
    "device in the project": "len(os.read(os.open('zero', os.O_RDONLY), 1)) and through()",
    "device outside": "len(os.read(os.open(OUTSIDE + '/zero', os.O_RDONLY), 1)) and through()",
    "device outside, written": "opened(OUTSIDE + '/zero', os.O_WRONLY)",
    "device in the home, copied": "subprocess.run(['cp', '-a', HOME + '/zero', 'again'], check=True);"
    " len(os.read(os.open('again', os.O_RDONLY), 1)) and through()",
    "own device": "os.mknod('own', 0o20666, os.makedev(1, 5)); len(os.read(os.open('own', os.O_RDONLY), 1)) and through()",
    "own device in /dev/shm": "os.mknod('/dev/shm/own', 0o20666, os.makedev(1, 5)); through()",
    "own device in /tmp": "os.mknod('/tmp/own', 0o20666, os.makedev(1, 5)); through()",
    "mount": "call(165, b'none', OUTSIDE.encode(), b'tmpfs', 0, 0)",
    "remount writable": "call(165, b'none', b'/proc', 0, 0x20, 0)",
    "unmount": "call(166, b'/dev', 2)",
    "mount attributes": "call(442, -100, b'/', 0x8000, struct.pack('QQQQ', 0, 1, 0, 0), 32)",
    "tree of mounts": "call(428, -100, b'/', 1)",
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
    "kernel ring": "call(103, 3, ctypes.create_string_buffer(64), 64)",
    "keyring": "call(248, b'user', b'artoo', b'x', 1, -3)",
    "programs for the kernel": "call(321, 0, struct.pack('IIII', 1, 4, 4, 1) + bytes(100), 116)",
    "performance events": "call(298, bytes(128), 0, -1, -1, 0)",
    "faults in userland": "call(323, 1)",
    "ring of calls": "call(425, 1, bytes(120))",
    "module": "call(313, 0, b'', 0)",
    "other kernel": "call(320, -1, -1, 0, b'', 0)",
    "restart": "call(169, 0xfee1dead, 672274793, 0, 0)",
    "swap": "call(167, b'/dev/vda', 0)",
    "clock": "call(227, 0, struct.pack('qq', 1, 0))",
    "accounting": "call(163, (HOME + '/project/acct').encode())",
    "ports": "call(172, 3)",
    "name of the machine": "socket.sethostname('taken')",
    "capabilities": "held = [one.split() for one in open('/proc/self/status') if one[:6] in ('CapPrm', 'CapEff')];"
    " any(int(one, 16) & ~(0 if os.getuid() else 0x1b) for _, one in held) and through()",
    "rights of a capability": "call(126, struct.pack('Ii', 0x20080522, 0), struct.pack('6I', 0x200000, 0x200000, 0, 0, 0, 0))",
    **{
        f"control groups, {name}": f"for g in groups():\n for d in [g, *glob.glob(g + '/*/')]:\n  try: opened(d + '/{name}', os.O_WRONLY)\n  except OSError: pass"
        for name in (
            "cgroup.procs",
            "cgroup.kill",
            "cgroup.subtree_control",
            "tasks",
            "release_agent",
            "devices.allow",
            "memory.max",
        )
    },
    "control groups, a new one": "for g in groups():\n try: os.mkdir(g + '/artoo-edge'); through(); os.rmdir(g + '/artoo-edge')\n except OSError: pass",
    "control groups, born into one": "for g in groups():\n w = os.open(g, os.O_RDONLY)\n"
    " r = libc.syscall(435, struct.pack('11Q', 1 << 33, 0, 0, 0, 17, 0, 0, 0, 0, 0, w), ctypes.c_size_t(88))\n"
    " if r == 0: os._exit(0)\n if r > 0: through()",
    "control groups, mounted": "call(165, b'none', (HOME + '/project').encode(), b'cgroup2', 0, 0)",
    "typing on the terminal": "fcntl.ioctl(os.open('/dev/tty', os.O_RDWR), 0x5412, b'x'); through()",
    "typing on what is read": "fcntl.ioctl(0, 0x5412, b'x'); through()",
    "priority of the user": "os.setpriority(os.PRIO_USER, os.getuid(), 5); MARK in open('/proc/%d/cmdline' % ARTOO).read() and through()",
    "disk priority of the user": "MARK in open('/proc/%d/cmdline' % ARTOO).read() and call(251, 3, os.getuid(), 3 << 13)",
    "pages of artoo": "MARK in open('/proc/%d/cmdline' % ARTOO).read() and call(279, ARTOO, 0, 0, 0, 0, 0)",
    "spared when memory runs out": "opened('/proc/self/oom_score_adj', os.O_WRONLY)",
    "program with its owner's rights": "p = 'suid'; open(p, 'wb').write(open('/usr/bin/id', 'rb').read()); os.chmod(p, 0o4755);"
    " os.chown(p, 0, 0); b'euid=' in subprocess.run(['./suid'], capture_output=True).stdout and through()",
}
"""Ways out. `call` takes numbers of x86_64."""

BOUNDS: dict[str, str] = {
    "own memory": "x = bytearray(300 * MIB); held()",
    "own memory of children": "children(12, lambda: globals().update(x=bytearray(40 * MIB)))",
    "memfd": "x = memfd(190); y = bytearray(30 * MIB); held()",
    "memfds": "x = [memfd(50) for _ in range(8)]; held()",
    "memfd, only mapped": "x = [mapped(memfd(100)) for _ in range(5)]; held()",
    "memfd, hidden": "hidden(); x = [memfd(100) for _ in range(5)]; held()",
    "memfd, only mapped and hidden": "hidden(); x = [mapped(memfd(100)) for _ in range(5)]; held()",
    "memfd, on its way": "a, b = socket.socketpair(); [sent(a, memfd(100)) for _ in range(5)]; held()",
    "memfd of a child": "children(1, lambda: globals().update(x=[memfd(100) for _ in range(4)]))",
    "memfds of children": "children(8, lambda: globals().update(x=memfd(50)))",
    "shared memory": "m = mmap.mmap(-1, 250 * MIB); [m.write(BLOCK) for _ in range(250)]; held()",
    "shared memory, given back in part": "m = mmap.mmap(-1, 250 * MIB); [m.write(BLOCK) for _ in range(250)];"
    " m.madvise(mmap.MADV_DONTNEED); held()",
    "shared memory, a page left": "m = libc.mmap; m.restype = ctypes.c_void_p; p = m(None, ctypes.c_size_t(400 * MIB), 3, 0x21, -1, 0);"
    " ctypes.memset(p, 1, 400 * MIB); libc.munmap(ctypes.c_void_p(p + 4096), ctypes.c_size_t(400 * MIB - 4096)); held()",
    "shared memory without a process": "libc.shmget.restype = ctypes.c_int; n = 0\n"
    "while n < 5000 and (i := libc.shmget(0, ctypes.c_size_t(MIB), 0o1600)) >= 0:\n"
    " libc.shmat.restype = ctypes.c_void_p; p = libc.shmat(i, None, 0); ctypes.memset(p, 1, MIB); libc.shmdt(ctypes.c_void_p(p)); n += 1\n"
    "n > 300 and held()",
    "semaphores": "n = sum(libc.semget(0, 32000, 0o1600) >= 0 for _ in range(100)); n and held()",
    "/dev/shm": "w = os.open('/dev/shm/x', os.O_WRONLY | os.O_CREAT); fill(w, 400); held()",
    "/dev/shm, without a name": "x = [unlinked('/dev/shm/x', 100) for _ in range(4)]; held()",
    "/run": "w = os.open('/run/x', os.O_WRONLY | os.O_CREAT); fill(w, 400); held()",
    "/dev": "w = os.open('/dev/x', os.O_WRONLY | os.O_CREAT); fill(w, 400); held()",
    "/tmp": "[fill(os.open('/tmp/%d' % n, os.O_WRONLY | os.O_CREAT), 50) for n in range(8)]; held()",
    "/var/tmp": "[fill(os.open('/var/tmp/%d' % n, os.O_WRONLY | os.O_CREAT), 50) for n in range(8)]; held()",
    "/tmp, without a name": "x = [unlinked('/tmp/x', 50) for _ in range(8)]; held()",
    "/tmp, without a name from the start": "x = [os.open('/tmp', os.O_TMPFILE | os.O_RDWR) for _ in range(8)];"
    " [fill(w, 50) for w in x]; held()",
    "project": "[fill(os.open('f%d' % n, os.O_WRONLY | os.O_CREAT), 50) for n in range(8)]; held()",
    "project, without a name": "x = [unlinked('x', 50) for _ in range(8)]; held()",
    "project, without a name and hidden": "hidden(); x = [unlinked('x', 50) for _ in range(8)]; held()",
    "project, without a name in children": "children(8, lambda: globals().update(x=unlinked('x%d' % os.getpid(), 50)))",
    "project, without a name, only mapped": "x = [mapped(unlinked('x', 50)) for _ in range(9)]; held()",
    "project, without a name, on its way": "a, b = socket.socketpair(); [sent(a, unlinked('x', 50)) for _ in range(9)]; held()",
    "project, reserved": "w = os.open('x', os.O_WRONLY | os.O_CREAT); [os.posix_fallocate(w, n * 50 * MIB, 50 * MIB) for n in range(8)]; held()",
    "home": "[fill(os.open(HOME + '/f%d' % n, os.O_WRONLY | os.O_CREAT), 50) for n in range(8)]; held()",
    "many files": "[os.close(os.open('f%d' % n, os.O_CREAT | os.O_WRONLY)) for n in range(9000)]; held()",
    "many directories": "[os.mkdir('d%d' % n) for n in range(9000)]; held()",
    "many links": "[os.symlink('x' * 200, 'l%d' % n) for n in range(9000)]; held()",
    "many names of one file": "open('o', 'w').close(); [os.link('o', 'n%d' % n) for n in range(9000)]; held()",
    "many files in /tmp": "[os.close(os.open('/tmp/f%d' % n, os.O_CREAT | os.O_WRONLY)) for n in range(9000)]; held()",
    "processes": "children(200, lambda: None)",
    "threads": "[threading.Thread(target=time.sleep, args=(5,), daemon=True).start() for _ in range(200)]; held()",
    "threads of children": "children(20, lambda: [threading.Thread(target=time.sleep, args=(5,), daemon=True).start() for _ in range(20)])",
    "descriptors": "most(); full(60, lambda: globals().update(x=[os.eventfd(0) for _ in range(19000)]))",
    "watches of descriptors": "import select; most(); x = [os.eventfd(0) for _ in range(18000)]; y = []\n"
    "for _ in range(90):\n e = select.epoll(); y.append(e)\n for f in x: e.register(f)\nheld()",
    "pieces of address space": "def split():\n m = libc.mmap; m.restype = ctypes.c_void_p; p = m(None, ctypes.c_size_t(60000 * 8192), 1, 0x22, -1, 0)\n"
    " [libc.mprotect(ctypes.c_void_p(p + n * 8192), 4096, 3) for n in range(30000)]\nfull(30, split)",
    "locks": "most(); x = [os.open('/tmp/%d' % n, os.O_RDWR | os.O_CREAT) for n in range(3000)]\n"
    "for w in x:\n for n in range(600): fcntl.lockf(w, fcntl.LOCK_EX, 1, 2 * n)\nheld()",
    "pages kept by pipes": "most(); x = []; m = libc.mmap; m.restype = ctypes.c_void_p; h = 2 * MIB\nfor _ in range(20):\n"
    " r, w = os.pipe(); x.append((r, w))\n for _ in range(15):\n"
    "  p = m(None, ctypes.c_size_t(2 * h), 3, 0x22, -1, 0); a = (p + h - 1) // h * h; libc.madvise(ctypes.c_void_p(a), ctypes.c_size_t(h), 14)\n"
    "  ctypes.memset(a, 1, h); v = struct.pack('QQ', a, 4096)\n"
    "  if libc.vmsplice(w, v, ctypes.c_size_t(1), 2) <= 0: raise OSError\n  libc.munmap(ctypes.c_void_p(p), ctypes.c_size_t(2 * h))\nheld()",
    "secret memory": "x = []; libc.syscall.restype = ctypes.c_long\nfor _ in range(80):\n w = libc.syscall(447, 0)\n if w < 0: raise OSError\n"
    " os.ftruncate(w, 4 * MIB); m = mmap.mmap(w, 4 * MIB); [m.__setitem__(i, 1) for i in range(0, 4 * MIB, 4096)]; m.close(); x.append(w)\nheld()",
    "names in /dev/shm": "[os.close(os.open('/dev/shm/%d' % n, os.O_CREAT | os.O_WRONLY)) for n in range(500000)]; held()",
    "links in /dev/shm": "[os.symlink('x' * 120, '/dev/shm/%d' % n) for n in range(500000)]; held()",
    "buffers of sockets": "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (4096, resource.getrlimit(7)[1]))"
    " if resource.getrlimit(7)[1] > 4096 else None\nx = []\nfor n in range(1500):\n a, b = socket.socketpair(); a.setblocking(False); x.append((a, b))\n try:\n"
    "  while True: a.send(bytes(65536))\n except BlockingIOError: pass\nheld()",
}
"""Ways to hold more than the limits of `edge_victim.py` allow: 200 MiB of memory and of disk, 8,000 paths, 100 tasks."""
