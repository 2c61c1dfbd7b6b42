"""What waits for consent: listed, looked at, applied and discarded in other processes, dropped after warnings."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from at_rest import config, edit, settler_at_rest

sys.path.insert(0, str(Path(__file__).parents[1] / "workspace"))
from laid_out import World, snapshot, workspace_of

from artoo.contracts.confirmation import ConfirmationAnswer, ConfirmationRequest, Consent
from artoo.contracts.errors import ConfigurationError, SandboxError
from artoo.contracts.settling import ApplyMode, ChangeClass, Ending, Settled
from artoo.ports.confirm import Confirm
from artoo.runtime.approvals.consent import Answers
from artoo.runtime.changes.find_pending import find_pending, pendings
from artoo.runtime.changes.settlement_history import Afterwards, SettledBooks
from artoo.runtime.changes.startup_recovery import drop_expired
from artoo.runtime.changes.undo import put_back
from artoo.tools.approval.policy import Policies
from artoo.workspace.commit import undo
from artoo.workspace.settlement.pending import DAY

TASK = "019f2b3c-aaaa"


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A home with two files in its project."""
    return World.at(tmp_path, a_txt="one\n", b_txt="two\n")


class User:
    """The user's side, as a task has it. `asked` is what came to it."""

    def __init__(self, world: World, *lines: str, confirm: Confirm | None = None, mode: str = "new") -> None:
        policies = Policies.parse(lines, world.project, world.home)
        self._answers = Answers(policies, confirm, ApplyMode(mode))
        self.asked: list[ConfirmationRequest] = []

    async def ask(self, request: ConfirmationRequest) -> ConfirmationAnswer:
        """Answers as a running task's user would."""
        self.asked.append(request)
        return await self._answers.answer(request)


def new(home: Path) -> None:
    (home / "project" / "new.txt").write_text("new\n")


def delete(home: Path) -> None:
    edit(home)
    (home / "project" / "b.txt").unlink()


async def settled(
    world: World, user: User | None, *, mode: str = "new", directive: str = "accept", task: str = TASK
) -> Settled:
    """The end of a task whose view is there."""
    settler = settler_at_rest(world.home, mode=ApplyMode(mode))
    ending = Ending.model_validate({"task_id": task, "directive": directive, "may_ask": user is not None})
    return await settler.settle(ending, user)


async def test_one_change_that_needs_consent_keeps_all_of_it(world: World) -> None:
    """All or nothing: the new file waits with the edit, and nothing has changed."""
    before = snapshot(world.project)
    workspace_of(world, lambda home: (edit(home), new(home)), TASK)
    found = await settled(world, User(world))
    assert found.state == "pending" and found.waits and not found.reason
    assert snapshot(world.project) == before
    (waiting,) = pendings(config(world))
    assert (waiting.task_id, waiting.request, waiting.cut_off) == (TASK, "do it", False)
    assert {each.change_class for each in waiting.counts} == {ChangeClass.EDIT, ChangeClass.SILENT}


async def test_an_abandoned_task_is_never_applied_unasked(world: World) -> None:
    """Not even what is silent; a person may still say yes."""
    workspace_of(world, new, "t-1")
    user = User(world, "create *.txt", mode="edits")
    assert (await settled(world, user, directive="abandon", task="t-1")).state == "pending"
    assert user.asked[0].review is not None and user.asked[0].review.unfinished
    workspace_of(world, new, "t-2")
    yes = User(world, confirm=once)
    assert (await settled(world, yes, directive="abandon", task="t-2")).state == "applied"


async def once(request: ConfirmationRequest) -> Consent:
    return Consent.ONCE


async def discard(request: ConfirmationRequest) -> Consent:
    return Consent.DISCARD


async def keep(request: ConfirmationRequest) -> Consent:
    return Consent.KEEP


async def test_a_review_is_complete_and_in_order_of_danger(world: World) -> None:
    """Deletions first and by name, the diff of the edit, the counts."""
    workspace_of(world, lambda home: (delete(home), new(home)), TASK)
    user = User(world, confirm=keep)
    assert (await settled(world, user)).state == "pending"
    review = user.asked[0].review
    assert review is not None
    assert [one.change_class.value for one in review.changes] == ["deletion", "edit", "silent"]
    assert review.changes[0].path.endswith("/b.txt")
    assert "-one" in review.changes[1].diff and "+edited" in review.changes[1].diff
    assert any("b.txt" in line for line in user.asked[0].details)


async def test_discarding_leaves_every_byte(world: World) -> None:
    """By the answer to the review, or days later."""
    before = snapshot(
        world.home,
    )
    workspace_of(world, delete, "t-1")
    assert (await settled(world, User(world, confirm=discard), task="t-1")).state == "discarded"
    workspace_of(world, delete, "t-2")
    await settled(world, User(world), task="t-2")
    assert (await find_pending(config(world), "t-2").discard()).state == "discarded"
    assert {k: v for k, v in snapshot(world.home).items() if not k.startswith(".artoo")} == before
    with pytest.raises(ConfigurationError, match="artoo status"):
        find_pending(config(world), "t-2")


async def test_a_pending_difference_is_applied_in_parts_and_undone_at_once(world: World) -> None:
    """Found by a prefix of its task's id; what was applied is told; undo takes all back."""
    before = snapshot(world.project)
    workspace_of(world, delete, TASK)
    await settled(world, User(world))
    waiting = find_pending(config(world), TASK[:6])
    shown = await waiting.diff()
    assert [each.count for each in shown.counts] == [1, 1]
    part = await waiting.apply([str(world.project / "a.txt")])
    assert part.state == "partly" and part.applied == (str(world.project / "a.txt"),)
    assert (world.project / "b.txt").exists()
    assert (await find_pending(config(world), TASK).apply()).state == "applied"
    assert not (world.project / "b.txt").exists() and pendings(config(world)) == ()
    assert undo(world.artoo_home, TASK).refused == ()
    assert snapshot(world.project) == before


async def test_conflicts_are_shown_and_the_rest_can_be_applied(world: World) -> None:
    """Its diff shows both versions; without a choice nothing is applied."""
    workspace_of(world, delete, TASK)
    await settled(world, User(world))
    (world.project / "a.txt").write_text("mine\n")
    waiting = find_pending(config(world), TASK)
    refused = await waiting.apply()
    assert refused.state == "pending" and "a.txt" in refused.reason and (world.project / "b.txt").exists()
    [conflict] = (await waiting.diff()).conflicts
    assert {"-mine", "+edited"} <= set(conflict.diff)
    assert (await waiting.apply(rest=True)).state == "partly"
    assert not (world.project / "b.txt").exists() and (world.project / "a.txt").read_text() == "mine\n"


async def test_what_was_shown_is_what_is_applied(world: World) -> None:
    """An approval carries the digest of what was shown."""
    workspace_of(world, edit, TASK)
    await settled(world, User(world))
    waiting = find_pending(config(world), TASK)
    with pytest.raises(SandboxError, match="no longer what was shown"):
        await waiting.apply(digest="0" * 64)
    assert (await waiting.apply(digest=await waiting.digest())).state == "applied"


async def test_nothing_expires_without_a_warning(world: World) -> None:
    """Three days before, at every start; a machine that was off for months warns first as well."""
    workspace_of(world, delete, TASK)
    await settled(world, User(world))
    since = pendings(config(world))[0].since
    assert drop_expired(config(world), since + 26 * DAY) == ()
    assert [each.task_id for each in drop_expired(config(world), since + 28 * DAY)] == [TASK]
    assert pendings(config(world))[0].warned
    drop_expired(config(world), since + 31.5 * DAY)
    assert pendings(config(world)) == ()
    record = (world.artoo_home / "workspaces" / "settled.jsonl").read_text()
    assert "expired" in record and "a.txt" in record
    workspace_of(world, delete, "late")
    await settled(world, User(world), task="late")
    drop_expired(config(world), since + 400 * DAY)
    assert len(pendings(config(world))) == 1
    drop_expired(config(world), since + 404 * DAY)
    assert pendings(config(world)) == ()


async def test_a_task_that_can_go_on_is_not_applied(world: World) -> None:
    """What it has done so far is half of something: it is looked at, resumed or discarded."""
    workspace_of(world, new, TASK)
    (waiting,) = pendings(config(world))
    pending = replace(waiting, request="do it")
    assert pending.resumable and len((await pending.diff()).changes) == 1
    with pytest.raises(SandboxError, match=f"artoo resume {pending.task_id} goes on"):
        await pending.apply()
    assert not (world.project / "new.txt").exists()
    assert (await pending.discard()).state == "discarded"


async def test_a_task_goes_on_after_its_difference_was_applied(world: World) -> None:
    """A process that died between the apply and its log: the next one tells what became of it."""
    workspace_of(world, new, TASK)
    first = await settled(world, User(world))
    settler = settler_at_rest(world.home, again=True)
    told = await settler.settle(Ending(task_id=TASK, directive="accept"), None)
    assert (told.state, told.digest) == ("applied", first.digest)


async def test_what_became_of_a_task_is_told_from_what_is_on_record(world: World) -> None:
    """It waits, is applied in part, the rest is discarded, and what was applied is put back: each in its order."""

    def now() -> Afterwards:
        return SettledBooks.of(world.artoo_home).afterwards(TASK, ended)

    workspace_of(world, delete, TASK)
    ended = await settled(world, User(world))
    waits = now().waits
    assert now().state == "waits" and waits is not None and waits.since is not None
    await find_pending(config(world), TASK).apply([f"{world.project}/a.txt"])
    assert now().state == "waits" and [one.paths for one in now().became] == [(f"{world.project}/a.txt",)]
    await find_pending(config(world), TASK).discard()
    assert now().state == "part applied"
    assert put_back(config(world), TASK, by="person").restored == (f"{world.project}/a.txt",)
    assert [one.act for one in now().became] == ["applied", "discarded", "undone"]
    assert (now().state, now().waits) == ("put back", None)
