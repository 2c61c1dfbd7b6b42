"""The table of routes answers the three questions that are asked of it."""

from __future__ import annotations

import pytest

from artoo.contracts.roles import Role
from artoo.contracts.routes import ROUTES, may_follow, may_publish


@pytest.mark.parametrize("role", list(Role))
def test_publishing_is_decided_by_the_table(role: Role) -> None:
    """A role may publish exactly the kinds whose route names it as a sender, and no unknown kind."""
    assert {kind for kind in ROUTES if may_publish(role, kind)} == {
        kind for kind, route in ROUTES.items() if role in route.senders
    }
    assert not may_publish(role, "Gossip")


@pytest.mark.parametrize("kind", list(ROUTES))
def test_causality_is_decided_by_the_table(kind: str) -> None:
    """A record may follow anything; a beginning needs no cause; every other kind follows its causes alone."""
    causes = ROUTES[kind].causes
    followed = {cause for cause in ROUTES if may_follow(kind, cause)}
    if causes is None:
        assert followed == set(ROUTES)
        assert may_follow(kind, None)
    else:
        assert followed == causes
        assert may_follow(kind, None) is (not causes)
    assert not may_follow("Gossip", kind)


def test_every_cause_in_the_table_is_a_kind() -> None:
    """A cause that nobody can publish would make its kind impossible; no kind is without a sender."""
    for route in ROUTES.values():
        assert route.senders
        assert (route.causes or frozenset()) <= set(ROUTES)
