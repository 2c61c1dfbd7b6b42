"""A message of the user that names no subtask reaches every executor that works."""

from __future__ import annotations

from artoo.bus.inprocess import InProcessBus
from artoo.contracts.roles import Role
from artoo.contracts.steering import UserMessage
from artoo.testing import FakeClock, SequentialIds


async def test_a_message_reaches_every_open_executor() -> None:
    """And nobody twice; one that names a subtask reaches that one alone, one that opens later hears nothing."""
    bus = InProcessBus(FakeClock(), SequentialIds())
    one, two = (bus.port(Role.EXECUTOR, "t1", subtask_id=key) for key in ("s1", "s2"))
    other_task = bus.port(Role.EXECUTOR, "t2", subtask_id="s1")
    planner, user = bus.port(Role.PLANNER, "t1"), bus.port(Role.USER, "t1")
    to_all = user.publish(UserMessage(text="all"))
    to_one = user.publish(UserMessage(text="one"), subtask_id="s1")
    later = bus.port(Role.EXECUTOR, "t1", subtask_id="s3")
    heard = [[each.id for each in port.queued] for port in (one, two, planner, other_task, later)]
    assert heard == [[to_all.id, to_one.id], [to_all.id], [to_all.id, to_one.id], [], []]
