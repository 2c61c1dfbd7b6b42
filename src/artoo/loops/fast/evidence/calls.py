"""What each tool call amounts to as evidence: what it could have done, whether it did, what of it counts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from artoo.contracts.execution import CallStatus, FailureClass, ToolCall
from artoo.loops.fast.evidence.effects import (
    ANYTHING,
    FILTERS,
    LITERALS,
    NOTHING,
    READERS,
    SEARCHERS,
    VERDICTS,
    WRITES,
    Effect,
    code_reads,
    effects_of,
    inline_code,
    tool_effects,
)
from artoo.loops.fast.evidence.names import mentions, names_in
from artoo.loops.fast.evidence.script import is_blind
from artoo.loops.fast.evidence.shell import Step, steps_of
from artoo.loops.fast.evidence.trouble import failure_class_of, trouble_lines, unfinished
from artoo.loops.fast.evidence.words import words

_SHELL_TOOLS = frozenset({"shell", "bash", "sh", "terminal", "run_command", "execute_command"})
_FAITHFUL_NEGATIVES: dict[str, int] = dict.fromkeys(
    words("""grep egrep fgrep rg ag ack diff cmp test [ [[ pgrep pidof which lsof locate plocate fd dpkg-query"""),
    1,
) | {"systemctl": 4}
"""Programs whose non-zero exit code, up to this one, is an answer (`no match`, `differs`) and no failure."""
_EDITORS = words("""rm rmdir unlink shred truncate mv rename tee touch patch chmod""")
_KILLED = frozenset({130, 137, 143, 124, -9, -15, -2})
_MEMORY_CHARACTERS = 200


class Standing(StrEnum):
    """How far a call can be relied on."""

    DONE = "done"
    NEGATIVE = "negative"
    UNKNOWN = "unknown"
    PARTIAL = "partial"
    FAILED = "failed"
    INCOMPLETE = "incomplete"
    REFUSED = "refused"
    WITHHELD = "withheld"


GOOD = frozenset({Standing.DONE, Standing.NEGATIVE})


@dataclass(frozen=True)
class CallView:
    """One call, read as evidence. `index` is its place in the order of calls."""

    call: ToolCall
    index: int

    @cached_property
    def command(self) -> str | None:
        """The shell command that really ran; None for other tools."""
        if self.call.tool not in _SHELL_TOOLS:
            return None
        return self.call.ran or self.call.input or self.call.target

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """The command's programs; empty for tools other than the shell."""
        return steps_of(self.command) if self.command is not None else ()

    @cached_property
    def effects(self) -> frozenset[Effect]:
        """Everything that the call can have done if it went well."""
        if self.command is None:
            named = tool_effects(self.call.tool, self.call.input)
        else:
            named = frozenset(effect for step in self.steps for effect in effects_of(step))
        return named | (WRITES if self.call.changes else NOTHING)

    @property
    def acts(self) -> bool:
        """Whether the call is one that does, builds, tests or sends something, not one that only looks."""
        return bool(self.effects)

    @property
    def opaque(self) -> bool:
        """Whether its effects are unknown in kind: a script, a program that no table knows."""
        return len(self.effects) > len(ANYTHING) // 2

    @cached_property
    def asked(self) -> str:
        """Everything that says what the call was to do: input, target, what really ran."""
        return "\n".join(part for part in (self.call.input, self.call.ran or "", self.call.target) if part)

    @cached_property
    def said(self) -> str:
        """Everything that came out of it."""
        return "\n".join(
            part for part in (self.call.output, self.call.error_output, self.call.reason or "") if part
        )

    @cached_property
    def operands(self) -> frozenset[str]:
        """The names that the call works on."""
        if self.command is None:
            return frozenset(names_in(self.call.target))
        words = (word for step in self.steps if effects_of(step) for word in (*step.operands, *step.writes))
        return frozenset(word.rstrip("/") for word in words if word and not word.isdigit())

    @cached_property
    def changed(self) -> frozenset[str]:
        """The names that the call itself changes: reported changes, redirections, operands of editors."""
        if self.call.changes:
            return frozenset(self.call.changes)
        if self.command is None:
            return frozenset(names_in(self.call.target)) if self.acts else frozenset()
        found: set[str] = set()
        for step in self.steps:
            found.update(step.writes)
            if step.program in _EDITORS or (step.program in ("sed", "perl") and Effect.EDIT in effects_of(step)):
                found.update(step.operands)
            elif step.program in ("cp", "install", "rsync") and step.operands:
                found.add(step.operands[-1])
        return frozenset(found)

    @cached_property
    def writes_own_words(self) -> bool:
        """Whether it fills a file with what its author wrote: `echo 5 > n.txt`, a heredoc, a writing tool."""
        if self.command is None:
            return self.acts
        return any(group[-1].writes and not reads_world(group) for group in self._pipelines) or any(
            step.program == "tee" and not reads_world(group) for group in self._pipelines for step in group
        )

    @cached_property
    def _pipelines(self) -> tuple[tuple[Step, ...], ...]:
        groups: dict[int, list[Step]] = {}
        for order, step in enumerate(self.steps):
            groups.setdefault(step.pipe or -order - 1, []).append(step)
        return tuple(tuple(group) for group in groups.values())

    @cached_property
    def empty_handed(self) -> bool:
        """A search that ended well and found nothing."""
        if self.call.result_count is not None:
            return self.call.result_count == 0
        return self.standing in GOOD and self.call.output.strip() in ("", "0", "[]", "{}")

    @cached_property
    def searches(self) -> bool:
        """Whether the call looks for something: a search tool, `find`, `grep`, a listing."""
        if self.call.result_count is not None:
            return True
        if self.command is None:
            return re.search(r"search|glob|find|list|mdfind|grep|index|query", self.call.tool) is not None
        return any(step.program in SEARCHERS and not effects_of(step) for step in self.steps)

    @cached_property
    def complaints(self) -> tuple[str, ...]:
        """Lines in which the tool reports an error; for calls that only look, only of the error stream."""
        heard = trouble_lines(self.call.error_output)
        if (self.acts and not self._reads_logs) or (self.command is None and self.call.status is not CallStatus.OK):
            heard += trouble_lines(self.call.output)
        return heard

    @cached_property
    def _reads_logs(self) -> bool:
        """Whether what it prints is the content of something else, in which the word error proves nothing."""
        last = [step for step in self.steps if step.last_stage and not step.substituted]
        return (
            bool(last)
            and all(step.program in READERS and step.pipe == 0 for step in last)
            and not _prints(self.steps)
        )

    @cached_property
    def standing(self) -> Standing:
        """How far the call can be relied on; the first reason that applies."""
        call = self.call
        if call.status is CallStatus.REFUSED:
            return Standing.REFUSED
        if call.status in (CallStatus.TIMEOUT, CallStatus.INTERRUPTED) or call.exit_code in _KILLED:
            return Standing.INCOMPLETE
        if call.exit_code is not None and call.exit_code != 0:
            return self._ended_badly()
        if call.status is CallStatus.ERROR:
            return Standing.FAILED
        if call.dropped:
            return Standing.WITHHELD
        return self._ended_well()

    def _ended_badly(self) -> Standing:
        last = next((step for step in reversed(self.steps) if not step.substituted), None)
        answer = last is not None and (self.call.exit_code or 0) <= _FAITHFUL_NEGATIVES.get(last.program, 0)
        if (
            answer
            and not self.complaints
            and not (last is not None and last.errors_discarded and last.program == "find")
        ):
            return Standing.NEGATIVE
        if not self.acts and self.call.output.strip() and self.command is not None:
            return Standing.PARTIAL
        return Standing.FAILED

    def _ended_well(self) -> Standing:
        if self._printed_exit_codes_failed:
            return Standing.FAILED
        if self.complaints:
            return Standing.FAILED if self.acts or not self.call.output.strip() else Standing.PARTIAL
        if self.acts and unfinished(self.call.output) and self._reports_progress:
            return Standing.PARTIAL
        if self.acts and self._fell_back:
            return Standing.FAILED
        if self.acts and self._outcome_hidden:
            return Standing.UNKNOWN
        return Standing.DONE

    @cached_property
    def _reports_progress(self) -> bool:
        return not self._reads_logs and not (self.effects <= WRITES and self.command is None)

    @cached_property
    def _printed_exit_codes_failed(self) -> bool:
        """`…; echo "exit $?"` prints the code that its own success then hides."""
        if not any(
            step.program in ("echo", "printf") and re.search(r"\$\?|\$\{?PIPESTATUS|\$rc\b", step.text)
            for step in self.steps
        ):
            return False
        tail = self.call.output.strip().splitlines()[-1:] or [""]
        return re.search(r"(?<![\w.])(?!0+\b)\d{1,3}\s*\W*$", tail[0]) is not None

    @cached_property
    def _fell_back(self) -> bool:
        """`work || echo failed`, and the words after `||` are there."""
        for step in self.steps:
            if step.fallback and step.program in ("echo", "printf"):
                words = " ".join(
                    "".join(word.pieces) for word in step.words if not word.text.startswith("-")
                ).strip()
                if (
                    words
                    and words in self.call.output
                    and not any(other.text == step.text for other in self.steps if not other.fallback)
                ):
                    return True
        return False

    @cached_property
    def _outcome_hidden(self) -> bool:
        """The acting program's failure could not have been seen: exit code replaced, and its words thrown away."""
        for step in self.steps:
            if not effects_of(step) or step.program in LITERALS:
                continue
            unseen = not step.exposed and step.errors_discarded
            silenced = step.hidden and not self.call.output.strip()
            filtered = bool(effects_of(step) & VERDICTS) and not step.exposed and self._picked_over(step)
            if (
                filtered
                or unseen
                or silenced
                or step.background
                or (not step.certain and not step.fallback and not step.exposed)
            ):
                return True
        return False

    def _picked_over(self, step: Step) -> bool:
        """Whether what the step says is filtered before anybody sees it: `make test | grep passed`."""
        later = [each for each in self.steps if each.pipe and each.pipe == step.pipe and each.stage > step.stage]
        return any(each.program in ("grep", "egrep", "rg", "head", "awk") for each in later)

    @cached_property
    def invented(self) -> bool:
        """Whether its output is only words that the command itself contains: echo, heredoc, printing code."""
        if self.call.tool == "python":
            return is_blind(self.call.input)
        if self.command is None or not self.steps:
            return False
        visible = [group for group in self._pipelines if not group[-1].writes]
        reading = [group for group in visible if reads_world(group)]
        counting_own_words = any(
            not reads_world(group) and len(group) > 1 and not any(step.substituted for step in group)
            for group in visible
        )
        return bool(visible) and (not reading or counting_own_words)

    @cached_property
    def literals(self) -> tuple[str, ...]:
        """The words that its own echo and printf put into the output."""
        return tuple(
            piece.replace("\\n", "\n").strip()
            for step in self.steps
            if step.program in ("echo", "printf")
            and not step.substituted
            and not (step.guarded and not re.search(r"\d", step.text))
            for word in step.words
            for line in word.pieces
            for piece in line.splitlines()
            if piece.strip()
        )

    @property
    def failure(self) -> str:
        """One line that says what went wrong, in the tool's own words where it has some."""
        words = next(iter(self.complaints), "") or (self.call.reason or "")
        code = f", exit code {self.call.exit_code}" if self.call.exit_code not in (None, 0) else ""
        withheld = f": withheld {', '.join(self.call.dropped)}" if self.call.dropped else ""
        name = (self.call.target or self.call.input)[:_MEMORY_CHARACTERS]
        return f"{self.call.tool} `{name}` {self.standing}{code}{withheld}" + (
            f": {words[:_MEMORY_CHARACTERS]}" if words else ""
        )

    @property
    def failure_class(self) -> FailureClass:
        """Whether the world or the approach was at fault."""
        return failure_class_of(self.call)

    def names(self, name: str) -> bool:
        """Whether the call was asked to work on this name, or changed it."""
        return mentions(self.asked, name) or any(mentions(path, name) for path in self.call.changes)


def reads_world(group: Sequence[Step]) -> bool:
    """Whether one pipeline (or single step) looks at anything that its author did not write into it."""
    return any(_step_reads(step, first=index == 0) for index, step in enumerate(group))


def _step_reads(step: Step, *, first: bool) -> bool:
    if step.program in LITERALS:
        return any(word.dynamic and re.search(r"\$\(|`", word.text) is not None for word in step.words)
    code = inline_code(step)
    if code is not None:
        return code_reads(code)
    if step.reads:
        return True
    if step.program in FILTERS:
        own = [word for word in step.operands if word != "-"]
        scripted = step.program in (
            "grep",
            "egrep",
            "fgrep",
            "rg",
            "sed",
            "awk",
            "gawk",
            "mawk",
            "jq",
            "yq",
            "tr",
            "perl",
        )
        if step.program in ("tee", "xargs", "bc", "dc", "tr"):
            return False
        if "BEGIN" in step.text and step.program.endswith("awk") and len(own) < 2:
            return False
        recursive = step.program in ("grep", "rg") and re.search(r"\s-\w*[rR]|--recursive", step.text) is not None
        files = own[1:] if scripted else [word for word in own if not word.isdigit()]
        return bool(files) or recursive or (step.program == "rg" and first and not step.heredoc)
    return step.program not in ("cd", "read", "", "export", "sleep", "local", "declare")


def _prints(steps: Sequence[Step]) -> bool:
    """Whether a step that acts prints to the command's output."""
    return any(effects_of(step) and not step.output_discarded and not step.writes for step in steps)


def views_of(tool_calls: Sequence[ToolCall]) -> tuple[CallView, ...]:
    """The calls as evidence, in order."""
    return tuple(CallView(call, index) for index, call in enumerate(tool_calls))


def primary_calls(tool_calls: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
    """The calls that did the work: those that act when there are any, else those that looked."""
    acting = tuple(view.call for view in views_of(tool_calls) if view.acts)
    return acting or tuple(tool_calls)


def repaired(view: CallView, views: Sequence[CallView]) -> bool:
    """Whether a later call did well what this one failed to do: same kind of effect, at least the same operands."""
    for later in views[view.index + 1 :]:
        if later.standing not in GOOD or later.invented:
            continue
        if view.acts and view.effects & later.effects and _covers(view, later):
            return True
        if not view.acts and (
            later.asked == view.asked or (_looked_at(view) and _looked_at(view) <= _looked_at(later))
        ):
            return True
    return False


def _covers(failed: CallView, later: CallView) -> bool:
    """The same work again, or more of it; also one script for another when both name the same things."""
    if failed.asked == later.asked or (failed.operands and failed.operands <= later.operands):
        return True
    if not failed.operands or failed.effects & later.effects & VERDICTS:
        return not later.operands
    common = {_stem(name) for name in failed.operands} & {_stem(name) for name in later.operands}
    named = set(names_in(failed.asked))
    return bool(common and failed.effects != later.effects) or bool(
        named and all(later.names(name) for name in named)
    )


def _stem(name: str) -> str:
    return re.sub(r"^(?:python3?-|lib|\./)|(?:\.\w{1,4}|-dev)$", "", name.rsplit("/", 1)[-1].lower())


def _looked_at(view: CallView) -> frozenset[str]:
    return frozenset(names_in(view.asked))
