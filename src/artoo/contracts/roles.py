"""The roles that can publish on the stream, with their ids R1 to R7.

Reference: paper, section 3.1. The ids are those of the v0.8 specification.
"""

from __future__ import annotations

from enum import StrEnum


class Role(StrEnum):
    """A role that publishes messages. Each port is bound to one role, so that no component can publish as another
    one."""

    USER = "user"
    PERCEIVER = "perceiver"
    PLANNER = "planner"
    DISPATCHER = "dispatcher"
    EXECUTOR = "executor"
    AGENT_VALIDATOR = "agent_validator"
    META_VALIDATOR = "meta_validator"
    SOLVER = "solver"
    GATE = "gate"
    MEMORY = "memory"
    DREAMER = "dreamer"
    AUDITOR = "auditor"
    BUS = "bus"
    BOARD = "board"
    MAILBOX = "mailbox"
    HEARTBEAT = "heartbeat"
    REVIEWER = "reviewer"

    # The hash of an enum is computed by a Python function, which is too slow, because a role is looked up several
    # times for every message.
    __hash__ = str.__hash__


# The short names in the v0.8 specification, which people see.
ROLE_IDS: dict[Role, str] = {
    Role.PERCEIVER: "R1",
    Role.PLANNER: "R2",
    Role.EXECUTOR: "R3",
    Role.AGENT_VALIDATOR: "R4a",
    Role.META_VALIDATOR: "R4b",
    Role.MEMORY: "R5",
    Role.AUDITOR: "R6",
    Role.SOLVER: "R7",
}
