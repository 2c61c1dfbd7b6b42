"""How commands are contained on this machine (Law 1), and why not better."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

from artoo.cli.diagnosis import Finding, State
from artoo.ports.sandbox import TierDiagnosis, TierName

MEANINGS: dict[TierName, str] = {
    "bubblewrap": "changes are shown before they happen; no network",
    "namespaces": "changes are shown before they happen; no network",
    "landlock": "commands run read-only first, then ask to run for real",
    "seatbelt": "commands run read-only first, then ask to run for real",
    "none": "nothing contains a command here: each one is asked about",
}


async def sandbox(home: Path) -> list[Finding]:
    """The active tier, and every better one that does not work here."""
    from artoo.world.choose import diagnose

    return [*findings_of(await diagnose(home)), await _bounds(), *_kept(home)]


async def _bounds() -> Finding:
    """Who counts a command's memory and processes: the kernel, or artoo."""
    from artoo.world.cgroup import place

    found = await asyncio.to_thread(place)
    if found.parent is not None:
        return Finding(
            "bounds", State.OK, f"memory and tasks of commands are held by the kernel, below {found.parent}"
        )
    what = f"memory and tasks of commands are counted ten times a second, for {found.why}"
    return Finding("bounds", State.OK, what, found.remedy)


def _kept(home: Path) -> list[Finding]:
    """Where what waits for a yes lies, when that does not last."""
    from artoo.world.mounts import MountTable

    if not MountTable.read().in_memory(os.fsencode(home.resolve())):
        return []
    what = f"{home} is in memory: changes that wait for your yes, logs and undo are lost at a reboot"
    return [Finding("home", State.WARN, what, "set ARTOO_HOME to a directory on a disk")]


def findings_of(tiers: Sequence[TierDiagnosis]) -> list[Finding]:
    """`tiers` are tried afresh, best first; the first one that works is used."""
    findings: list[Finding] = []
    for tier in tiers:
        if tier.works:
            state = State.WARN if tier.tier == "none" else State.OK
            return [*findings, Finding("sandbox", state, f"{tier.tier}: {MEANINGS[tier.tier]}")]
        findings.append(Finding(tier.tier, State.WARN, f"does not work here: {tier.cause}", tier.remedy))
    return [*findings, Finding("sandbox", State.FAIL, "no tier is known for this system")]
