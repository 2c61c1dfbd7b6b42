"""`artoo doctor` on the sandbox backend in use, its limits, and better backends that do not work here.

Reference: Law 1.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

from artoo.cli.doctor.checks import Diagnosis, State
from artoo.ports.workspace import BackendName
from artoo.sandbox.backends.diagnostics import BackendDiagnosis

_IN_A_COPY = "commands work in a copy of the project; changes are shown before they happen; no network"
MEANINGS: dict[BackendName, str] = {
    "bubblewrap": "changes are shown before they happen; no network",
    "landlock": _IN_A_COPY,
    "seatbelt": _IN_A_COPY,
    "none": "nothing confines a command here: each one is asked about",
}


async def sandbox(home: Path) -> list[Diagnosis]:
    """Return findings about the backend in use, and about every better one that does not work here."""
    from artoo.sandbox.backends.select import diagnose

    return [*findings_of(await diagnose(home)), await _bounds(), *_kept(home)]


async def _bounds() -> Diagnosis:
    """Report whether the kernel limits the memory and the processes of commands, or only artoo itself."""
    from artoo.sandbox.limits.cgroup import group_parent

    found = await asyncio.to_thread(group_parent)
    if found.path is not None:
        return Diagnosis(
            "bounds", State.OK, f"memory and tasks of commands are held by the kernel, below {found.path}"
        )
    what = f"memory and tasks of commands are counted ten times a second, for {found.why}"
    return Diagnosis("bounds", State.OK, what, found.remedy)


def _kept(home: Path) -> list[Diagnosis]:
    """Warn if pending changes would be lost when the machine restarts, because the home is in memory."""
    from artoo.sandbox.reading.mount_table import MountTable

    if not MountTable.read().in_memory(os.fsencode(home.resolve())):
        return []
    what = f"{home} is in memory: pending changes, logs and undo are lost at a reboot"
    return [Diagnosis("home", State.WARN, what, "set ARTOO_HOME to a directory on a disk")]


def findings_of(backends: Sequence[BackendDiagnosis]) -> list[Diagnosis]:
    """Return the findings about `backends`, which are sorted from the best to the worst. The first backend that
    works is used."""
    findings: list[Diagnosis] = []
    for one in backends:
        if one.works:
            state = State.WARN if one.backend == "none" else State.OK
            return [*findings, Diagnosis("sandbox", state, f"{one.backend}: {MEANINGS[one.backend]}")]
        findings.append(Diagnosis(one.backend, State.WARN, f"does not work here: {one.cause}", one.remedy))
    return [*findings, Diagnosis("sandbox", State.FAIL, "no way to confine commands is known for this system")]
