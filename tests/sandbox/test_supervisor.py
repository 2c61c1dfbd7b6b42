"""The supervisor is out of reach of commands, so exit codes and outputs cannot be forged through it."""

from __future__ import annotations

import json
import platform
from pathlib import Path

import pytest
from escape_attempts import ONE_BY_ONE, PRELUDE
from living import World

from plain_user import as_plain_user

_FILES = ("mem", "environ", "maps", "auxv", "stack", "syscall", "exe", "root/etc/passwd", "io", "cwd/etc/passwd")

ATTEMPTS: dict[str, str] = {
    **{f"read /proc/1/{name}": f"len(open('/proc/1/{name}', 'rb').read(1)) and through()" for name in _FILES},
    **{
        f"open descriptor {number} of the supervisor": f"opened('/proc/1/fd/{number}', os.O_RDWR)"
        for number in range(12)
    },
    "see a descriptor of the supervisor": "[os.readlink('/proc/1/fd/%d' % n) for n in range(3, 12)]; through()",
    "take a descriptor of the supervisor": "w = os.pidfd_open(1)\nfor n in range(12): call(438, w, n, 0)",
    "memory of the supervisor": "b = ctypes.create_string_buffer(8); v = struct.pack('QQ', ctypes.addressof(b), 8);"
    " call(310, 1, v, 1, struct.pack('QQ', id(b), 8), 1, 0); call(311, 1, v, 1, struct.pack('QQ', id(b), 8), 1, 0)",
    "trace the supervisor": "call(101, 16, 1, 0, 0); call(101, 0x4206, 1, 0, 0)",
    "compare with the supervisor": "call(312, os.getpid(), 1, 0, 0, 1)",
    "namespaces of the supervisor": "opened('/proc/1/ns/mnt', os.O_RDONLY)",
    "limits of the supervisor": "call(302, 1, 7, struct.pack('QQ', 0, 0), 0)",
    "priority of the supervisor": "os.setpriority(os.PRIO_PROCESS, 1, 5); through()",
    "priority of the supervisor's group": "os.setpriority(os.PRIO_PGRP, 1, 5); through()",
    "scheduling of the supervisor": "os.sched_setscheduler(1, os.SCHED_IDLE, os.sched_param(0)); through()",
    "processors of the supervisor": "os.sched_setaffinity(1, {0}); through()",
    "disk priority of the supervisor": "call(251, 1, 1, 3 << 13)",
    "pages of the supervisor": "call(256, 1, 64, bytes(8), bytes(8)); call(279, 1, 0, 0, 0, 0, 0)",
    "advice for the supervisor": "call(440, os.pidfd_open(1), struct.pack('QQ', 4096, 4096), 1, 21, 0)",
    "the supervisor's place when memory runs out": "opened('/proc/1/oom_score_adj', os.O_WRONLY)",
    "the supervisor's name": "opened('/proc/1/comm', os.O_WRONLY)",
    "a session that the supervisor is in": "os.getsid(0) == 1 and through(); os.getpgid(0) == 1 and through()",
    "a terminal of the supervisor's": "opened('/dev/tty', os.O_RDWR)",
}
"""Ways to the supervisor. `call` takes numbers of x86_64."""


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the attempts know the numbers of this processor only")
async def test_no_way_leads_to_the_supervisor(world: World) -> None:
    """Its memory, descriptors, socket, limits and priority are closed to commands, which run as the same user."""
    attempts = {name: f"{PRELUDE}\n{code}" for name, code in ATTEMPTS.items()}
    async with world.sandbox() as commands:
        words = ("/usr/bin/python3", "-c", ONE_BY_ONE, "", "", "1", "")
        ended = await commands.run(*words, stdin=json.dumps(attempts).encode())
        assert (ended.exit_code, ended.stdout.text) == (0, ""), ended.stderr.text


async def test_signals_do_not_reach_the_supervisor(world: World) -> None:
    """Commands can end each other, but afterwards the next one runs and its exit code is its own."""
    every = "import os, signal\nfor n in sorted(signal.valid_signals()):\n    os.kill(1, n)\nprint('sent')"
    async with world.sandbox() as commands:
        assert (await commands.run("/usr/bin/python3", "-c", every)).stdout.text == "sent\n"
        for number in ("STOP", "KILL", "CHLD"):
            other = await commands.start("sleep", "60")
            await commands.bash(f"kill -{number} -1")
            ended = await commands.bash("echo here; exit 3")
            assert (ended.exit_code, ended.stdout.text) == (3, "here\n")
            assert (await other.stop()).exit_code is None or number == "KILL"


async def test_a_command_that_forks_without_end_is_stopped(world: World) -> None:
    """Each of its processes starts the next and ends, so none is there for long; other commands go on."""
    relay = "import os\nfor _ in range(20_000):\n    if os.fork(): os._exit(0)\n"
    async with world.sandbox() as commands:
        other = await commands.start("sleep", "60")
        process = await commands.start("/usr/bin/python3", "-I", "-S", "-c", relay)
        ended = await process.wait()
        assert ended is not None and ended.notes
        await process.stop(grace_seconds=0)
        assert await commands.says("cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -c 2[0]_000 || true") == "0\n"
        assert other.ended is None


async def test_a_command_inherits_nothing(world: World) -> None:
    """It has three descriptors, a session of its own, no capability, and default signal dispositions."""
    async with world.sandbox() as commands:
        assert await commands.says("exec ls /proc/self/fd") == "0\n1\n2\n3\n"  # the last is of ls
        session = "import os, signal; print(os.getsid(0) == os.getpid(), signal.getsignal(signal.SIGHUP).name)"
        assert (await commands.run("/usr/bin/python3", "-c", session)).stdout.text == "True SIG_DFL\n"
        status = await commands.says("grep -E 'Cap(Eff|Prm)|NoNewPrivs|Seccomp:|SigIgn' /proc/self/status")
        values = dict(line.split(":\t") for line in status.splitlines())
        assert (values["NoNewPrivs"], values["Seccomp"]) == ("1", "2")
        assert int(values["SigIgn"], 16) & ~(3 << 31) == 0  # the C library ignores two of its own
        assert int(values["CapEff"], 16) & ~0x1B == 0


def test_all_of_this_holds_for_a_plain_user() -> None:
    """Some of these tests again, as a user without any rights."""
    as_plain_user(Path(__file__), only="no_way or signals")
