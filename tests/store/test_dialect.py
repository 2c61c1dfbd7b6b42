"""The books' SQL as psycopg takes it."""

from __future__ import annotations

import pytest

from artoo.store.postgres import for_psycopg


@pytest.mark.parametrize(
    ("sql", "taken"),
    [
        ("SELECT * FROM t WHERE a = ? AND b = ?", b"SELECT * FROM t WHERE a = %s AND b = %s"),
        ("a = :agent OR b IN ('', :project12)", b"a = %(agent)s OR b IN ('', %(project12)s)"),
        ("a = '?' AND b = ':name' AND c = 'it''s ?'", b"a = '?' AND b = ':name' AND c = 'it''s ?'"),
        ("a % 2 = ? AND b LIKE 'x%'", b"a %% 2 = %s AND b LIKE 'x%%'"),
    ],
)
def test_only_signs_of_parameters_change(sql: str, taken: bytes) -> None:
    """Question marks and names become psycopg's, texts between quotes stay, percent signs are doubled."""
    assert for_psycopg(sql) == taken
