"""Physical forgetting (paper, section 7.1): what has faded is deleted, so that it cannot become noise."""

from __future__ import annotations

from artoo.contracts.memory import Megram
from artoo.control.potentials import FORGET_BELOW, retention
from artoo.loops.slow.passing import EXAMPLES, Pass, changed
from artoo.ports.dream import Fading

CURSOR = "cursor:forget"
CHECKPOINT_EVERY = 16_384
DELETED_TOGETHER = 128


def faded(entry: Fading) -> bool:
    """True when an M or K entry's own live magnitude is below .1."""
    return entry.f * retention(entry.k, entry.age_days) < FORGET_BELOW


async def forget(work: Pass) -> None:
    """Sweeps the evidence from where the last pass stopped, within the bound of one pass."""
    after = await work.store.mark(CURSOR) or None
    budget = work.limits.records
    unsaved = 0
    doomed: list[str] = []
    while budget > 0 and work.in_time:
        await work.pace()
        found = await work.store.fading(after, min(work.limits.slice, budget), faded)
        doomed += [entry.megram_id for entry in found.found]
        budget -= found.examined
        unsaved += found.examined
        work.findings.examined += found.examined
        after = found.after
        if after is None:
            break
        if len(doomed) >= DELETED_TOGETHER or unsaved >= CHECKPOINT_EVERY:
            await _settle(work, doomed, after)
            unsaved = 0
    await _settle(work, doomed, after)
    work.findings.finished = work.findings.finished and after is None


async def _settle(work: Pass, doomed: list[str], after: str | None) -> None:
    """Deletes what was found and only then moves the cursor: a crash in between repeats, and loses nothing."""
    for start in range(0, len(doomed), DELETED_TOGETHER):
        await work.pace()
        _note(work, await work.store.forget(doomed[start : start + DELETED_TOGETHER], faded))
    doomed.clear()
    await work.store.set_mark(CURSOR, after)


def _note(work: Pass, gone: tuple[Megram, ...]) -> None:
    work.findings.forgotten += len(gone)
    room = EXAMPLES - len(work.findings.forgotten_examples)
    work.findings.forgotten_examples += [
        changed(megram, f"faded: f = {megram.f:g}, k = {megram.k:g}, {megram.state.value}")
        for megram in gone[: max(0, room)]
    ]
