"""Who may say what, who hears it, and what it answers."""

from __future__ import annotations

import pytest
from bus_doubles import TASK, called, new_bus, request, subtask

from artoo.contracts.base import Contract
from artoo.contracts.codec import payload_classes
from artoo.contracts.envelope import Envelope
from artoo.contracts.errors import RouteRefused
from artoo.contracts.events import RouteViolation
from artoo.contracts.roles import Role
from artoo.contracts.routes import ROUTES
from artoo.ports.bus import Bus


def bare(kind: str) -> Contract:
    """A payload of a kind without contents: routing looks at its type only."""
    return payload_classes()[kind].model_construct()


@pytest.mark.parametrize("kind", list(ROUTES))
def test_a_port_speaks_only_as_the_table_of_routes_allows(kind: str) -> None:
    """For every role: published when the table names the role as sender, else refused and on the stream."""
    bus = new_bus()
    seen: list[Envelope] = []
    bus.attach(seen.append)
    for role in Role:
        port = bus.port(role, TASK)
        if role in ROUTES[kind].senders:
            envelope = port.publish(bare(kind))
            assert envelope is seen[-1]
            assert (envelope.kind, envelope.sender) == (kind, role)
            continue
        with pytest.raises(RouteRefused, match=f"{role.value} may not publish {kind}"):
            port.publish(bare(kind))
        violation = seen[-1].payload
        assert isinstance(violation, RouteViolation) and seen[-1].sender is Role.BUS
        assert (violation.offender, violation.refused_kind) == (role, kind)


@pytest.mark.parametrize("kind", list(ROUTES))
async def test_every_receiver_of_a_kind_hears_it_and_nobody_else(kind: str) -> None:
    """The inboxes that a message reaches are exactly those of the roles in its route."""
    bus = new_bus()
    ports = {role: bus.port(role, TASK) for role in Role}
    other_task = bus.port(next(iter(ROUTES[kind].receivers), Role.USER), "another task")
    sent = ports[next(iter(ROUTES[kind].senders))].publish(bare(kind))
    heard = {role for role, port in ports.items() if sent in port.queued}
    assert heard == ROUTES[kind].receivers
    assert not other_task.queued


def test_a_kind_outside_the_table_is_refused() -> None:
    """A payload that the table does not know cannot be published by anybody."""

    class Gossip(Contract):
        """Not in the table."""

    bus = new_bus()
    with pytest.raises(RouteRefused, match="not in the table of routes"):
        bus.port(Role.SOLVER, TASK).publish(Gossip())


def test_an_envelope_says_what_it_answers_and_when_it_was_sent() -> None:
    """id, sender, task, subtask, cause and time are set by the bus from the port, the cause and the clock."""
    bus: Bus = new_bus()
    cause = bus.port(Role.USER, TASK).publish(request())
    dispatcher = bus.port(Role.DISPATCHER, TASK)
    sent = dispatcher.publish(subtask("s1"), cause=cause, subtask_id="s1")
    assert cause.cause_id is None
    assert (sent.cause_id, sent.task_id, sent.subtask_id) == (cause.id, TASK, "s1")
    assert sent.id > cause.id
    assert sent.at.utcoffset() is not None


def test_a_subtask_port_speaks_for_its_subtask() -> None:
    """The subtask id defaults to the port's own, and an explicit one wins."""
    bus = new_bus()
    port = bus.port(Role.EXECUTOR, TASK, subtask_id="s1")
    assert port.publish(called()).subtask_id == "s1"
    assert port.publish(called(), subtask_id="s2").subtask_id == "s2"
    assert (port.role, port.task_id, port.subtask_id) == (Role.EXECUTOR, TASK, "s1")


def test_a_violation_names_what_caused_the_attempt() -> None:
    """The record of a refused message carries the task, subtask and cause of the attempt."""
    bus = new_bus()
    seen: list[Envelope] = []
    bus.attach(seen.append)
    cause = bus.port(Role.USER, TASK).publish(request())
    with pytest.raises(RouteRefused):
        bus.port(Role.EXECUTOR, TASK, subtask_id="s1").publish(request(), cause=cause)
    assert (seen[-1].kind, seen[-1].subtask_id, seen[-1].cause_id) == ("RouteViolation", "s1", cause.id)
