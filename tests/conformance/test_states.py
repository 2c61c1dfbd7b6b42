"""The state that is reduced from a recorded task agrees with what the task says of itself at its end."""

from __future__ import annotations

from tapes import Tape

from artoo.contracts.execution import SubTaskOutcome
from artoo.contracts.solution import Decided
from artoo.tasklog.state import Phase, Stage, TaskState


def test_recorded_tasks_are_reduced_to_what_they_report(tapes: dict[str, Tape]) -> None:
    """Calls, rounds, outcomes and the end, for every recorded task."""
    for name, tape in tapes.items():
        state = TaskState()
        for envelope in tape.messages:
            state.apply(envelope)
        result = state.result
        assert result is not None and state.phase is Phase.ENDED, name
        assert state.model_calls == result.cost.llm_calls, name
        assert state.tool_calls == result.cost.tool_calls, name
        assert state.tokens == result.cost.prompt_tokens + result.cost.completion_tokens, name
        decisions = [each.payload for each in tape.messages if isinstance(each.payload, Decided)]
        assert [each.decided for each in state.rounds] == decisions, name
        outcomes = [each.payload for each in tape.messages if isinstance(each.payload, SubTaskOutcome)]
        subtasks = [one for each in state.rounds for one in each.subtasks.values() if one.outcome is not None]
        assert {one.subtask_id: one.outcome for one in subtasks} == {one.subtask_id: one for one in outcomes}, name
        assert not any(one.stage is Stage.CHECKING or one.running for one in subtasks), name
