"""`--apply all` is typed each time or set by the environment, and covers project and output folder only."""

from __future__ import annotations

from pathlib import Path

import pytest

from artoo.contracts.changes import ChangeKind
from artoo.contracts.confirmation import AskedAct, ConfirmationRequest
from artoo.contracts.errors import ConfigurationError
from artoo.contracts.settling import ApplyMode, ChangeClass, ClassifiedChange, Review
from artoo.ports.sandbox import Roots
from artoo.runtime.approvals.consent import Answers
from artoo.runtime.config.loader import read_config

ROOTS = Roots(Path("/home/u"), Path("/home/u/out"), Path("/home/u/project"))


def asked(change_class: ChangeClass, path: str) -> ConfirmationRequest:
    """The question about one change."""
    change = ClassifiedChange(path=path, change_class=change_class, kind=ChangeKind.DELETED, reason="so")
    review = Review(task_id="t", counts=(), changes=(change,))
    return ConfirmationRequest(
        digest="d", title="apply?", acts=(AskedAct(verb="delete", target=path),), language="en", review=review
    )


@pytest.mark.parametrize(
    ("change_class", "path", "approved"),
    [
        (ChangeClass.DELETION, "/home/u/project/a", True),
        (ChangeClass.DELETION, "/home/u/out/a", True),
        (ChangeClass.PERSISTENCE, "/home/u/project/Makefile", True),
        (ChangeClass.HISTORY, "/home/u/project/.git (main: moved)", True),
        (ChangeClass.PERSISTENCE, "/home/u/project/.git/hooks/pre-commit", False),
        (ChangeClass.ELSEWHERE, "/home/u/notes.txt", False),
        (ChangeClass.DELETION, "/home/u/projects/a", False),
    ],
)
async def test_what_all_approves(change_class: ChangeClass, path: str, approved: bool) -> None:
    """Hooks and settings of git are approved by name, and nothing outside of both directories is covered."""
    answers = Answers(mode=ApplyMode.ALL, roots=ROOTS)
    answer = await answers.answer(asked(change_class, path))
    assert answer.consent.is_yes is approved
    assert answer.by.endswith("--apply all") is approved


def test_all_is_no_setting_of_a_file(tmp_path: Path) -> None:
    """A file would approve everything unseen; a container's environment may say so."""
    file = tmp_path / "config.yaml"
    file.write_text("apply: all\n")
    with pytest.raises(ConfigurationError, match=r"config\.yaml:1:8: cannot be all in a file"):
        read_config(file, {})
    file.write_text("apply: ask\n")
    assert read_config(file, {"ARTOO_APPLY": "all"}).apply is ApplyMode.ALL
