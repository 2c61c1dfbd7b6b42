"""What a client is told of a task that has ended."""

from __future__ import annotations

from artoo.contracts.solution import Directive, FinalResult, Loss, StoppedBy
from artoo.protocols.handed import Fetching, HandedTask
from artoo.protocols.reports import result_report, running_report
from artoo.redaction import Redactor
from artoo.runtime.changes.settlement_history import Afterwards


def test_a_task_that_asks_back_has_its_question() -> None:
    """It did not fail: it needs an answer, which is given with another request."""
    result = FinalResult(
        task_id="t", summary="Which file?", output="Which file?", loss=Loss(), directive=Directive.ABANDON,
        stopped_by=StoppedBy.QUESTION,
    )  # fmt: skip
    report = result_report(result, "delete it", Afterwards(), Redactor())
    assert (report.status, report.question) == ("asks", "Which file?")


def test_a_task_that_waits_for_a_download_says_so() -> None:
    """The first task on a machine without a model fetches a gigabyte, which no client can see otherwise."""
    fetching = Fetching()
    fetching(100 << 20, 1_000 << 20, "downloading")
    report = running_report(HandedTask(task_id="t", request="count", fetching=fetching), Redactor())
    assert report.doing == "downloading: 100 of 1000 MB"
    fetching(1_000 << 20, 1_000 << 20, "downloading")
    assert running_report(HandedTask(task_id="t", fetching=fetching), Redactor()).doing == ""
