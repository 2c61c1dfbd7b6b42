"""Messages between executor (R3) and validator (R4a), call records, and how much output models are shown.

The outcome of a subtask is one of these messages.
"""

from __future__ import annotations

import ast
import json
from collections import defaultdict
from collections.abc import Iterable, KeysView, Sequence
from contextlib import suppress
from enum import StrEnum
from itertools import pairwise
from typing import Literal, cast

from pydantic import Field

from artoo.contracts.base import Contract
from artoo.contracts.criteria import Assurance, Mode, weakest
from artoo.contracts.failure import FailureClass, failure_class, says_absent
from artoo.contracts.findings import Reason
from artoo.contracts.plan import Glance
from artoo.contracts.roles import Role

# Number of characters of a tool's output that are kept (SPEC section 2), half from the start of the output and half
# from its end. The first number is for a small model, the second is the maximum for a model with a large window.
OUTPUT_KEPT = 4_000
MOST_OUTPUT_SHOWN = 40_000


# Maximum number of characters of a verdict's evidence.
EVIDENCE_KEPT = 2_000

# The first words of the error that artoo's own file tools give for a missing path.
_OWN_ABSENCE = "there is no "
# The exit code of a shell that finds no program with a name, or a program without its libraries.
_NO_PROGRAM = 127
# The first line of an error report of Python.
_TRACEBACK = "Traceback (most recent call last)"
_SHELL = "shell:"
_READING_TOOLS = frozenset(
    ("read_file", "find_files", "search_text", "find_text", "glob", "search", "web_search", "web_fetch")
)
_TEXT_PROGRAMS = (
    "cat cksum cmp column cut diff egrep fgrep grep head jq md5sum nl rg sha256sum sort tac tail tr uniq wc"
)
_STATE_PROGRAMS = "date du file find id locate ls mdfind pgrep ps pwd readlink realpath stat tree uname whoami"
# Programs that change nothing and print information that their command does not contain.
_READING_PROGRAMS = frozenset((*_TEXT_PROGRAMS.split(), *_STATE_PROGRAMS.split()))
# Programs that only show something. If one of them fails, it found nothing.
_SHOWING_PROGRAMS = _READING_PROGRAMS | {"[", "basename", "command", "dirname", "echo", "printf", "test", "which"}
_GIT_SHOWS = frozenset(
    ("blame", "describe", "diff", "grep", "log", "ls-files", "rev-list", "rev-parse", "shortlog", "show", "status")
)
_WRITES = frozenset((">", ">>", "&>", ">|"))
_ENDS_ITSELF, _BRACKETS = frozenset(("exit", "return")), "(){};"

WithheldBy = Literal["person", "nobody"]
"""Who refused an operation. It is a user, or artoo itself because no user could be asked."""


class CallStatus(StrEnum):
    """The possible results of a tool call. Only `ok` can support a claim that something was done.

    `running`: the call timed out and its command continues as a process. The result is not known yet."""

    OK = "ok"
    ERROR = "error"
    RUNNING = "running"
    TIMEOUT = "timeout"
    INTERRUPTED = "interrupted"
    REFUSED = "refused"

    @property
    def failed(self) -> bool:
        """Return whether the call ran and failed."""
        return self in (CallStatus.ERROR, CallStatus.TIMEOUT, CallStatus.INTERRUPTED)


class ToolCall(Contract):
    """A record of one tool call. The claims of an executor are checked against these records.

    `identity` contains the names by which calls are blocked: the name of the tool, and for the shell each program
    (`shell:find`). `target` is the main input, such as a path, a query or a URL. For the shell it is the command in
    its normal form. `ran` is the command that was really run, if it differs from `input`. `output` and
    `error_output` are shortened to head and tail. `total_bytes` is the number of all bytes of both streams.
    `result_count` is set by searches. `changes` are the paths that the call created or changed. `bookkeeping` is
    true if it changed git's own files. `dropped` are the changes that were withheld. `withheld_by` says who refused
    them. `self_contained`: true if the code that was run could read nothing except its own text. `process` is the
    id of the process that was still running when the call ended. `overlapped`: true if calls or processes of other
    subtasks ran at the same time. Some of `changes` may be theirs, and their records then contain the same paths.
    `masked`: true if the command continues after an error of one of its programs, so that its exit code may hide
    this error."""

    tool: str
    identity: tuple[str, ...]
    target: str = ""
    input: str = ""
    ran: str | None = None
    status: CallStatus = CallStatus.OK
    exit_code: int | None = None
    output: str = ""
    error_output: str = ""
    total_bytes: int = 0
    truncated: bool = False
    duration_ms: int = 0
    result_count: int | None = None
    changes: tuple[str, ...] = ()
    bookkeeping: bool = False
    dropped: tuple[str, ...] = ()
    withheld_by: WithheldBy | None = None
    reason: str | None = None
    self_contained: bool = False
    process: str = ""
    overlapped: bool = False
    masked: bool = False

    @property
    def never_ran(self) -> bool:
        """Return whether the call was refused before it did anything, for another reason than missing consent. Such
        reasons are a block, a repeated call, and bad arguments. Such a call proves nothing about its tool and its
        target."""
        return self.status is CallStatus.REFUSED and self.withheld_by is None and not self.dropped

    @property
    def went_wrong(self) -> bool:
        """Return whether the call ended without success. A command that is still running has not ended."""
        return self.status not in (CallStatus.OK, CallStatus.RUNNING)

    @property
    def changed_something(self) -> bool:
        """Return whether the call changed files, or git's own files."""
        return bool(self.changes) or self.bookkeeping

    @property
    def says_no(self) -> bool:
        """Return whether the call may be a search, a test or a comparison with a negative result. Its exit code is
        then 1, and neither the system nor Python reports an error."""
        if self.status is not CallStatus.ERROR or self.exit_code != 1:
            # return early, because this is called for every call that is shown, and the search below is slow
            return False
        told = bool(self.output.strip()) or not self.error_output.strip()
        error = _TRACEBACK in self.error_output or failure_class(self.error_output) is FailureClass.ENVIRONMENTAL
        return told and not error

    @property
    def only_looked(self) -> bool:
        """Return whether the call used a tool that reads, or only programs of the shell that show or print
        something."""
        words = self.target.split()
        if self.changed_something or not _WRITES.isdisjoint(words):
            return False
        behind = _words_behind(words)
        programs = (each.removeprefix(_SHELL) for each in self.identity if each.startswith(_SHELL))
        others = {each for each in self.identity if not each.startswith(_SHELL)}
        return others <= _READING_TOOLS and all(only_shows(one, *behind.get(one, ())) for one in programs)

    @property
    def looked_in_vain(self) -> bool:
        """Return whether the call only read and failed. A command that sets its exit code itself (`exit 1`) does
        not count, because this code may mean anything."""
        words = {word.strip(_BRACKETS) for word in self.target.split()}
        return self.went_wrong and self.only_looked and _ENDS_ITSELF.isdisjoint(words)

    @property
    def hidden_error(self) -> str:
        """Return the error that the call printed although its exit code is 0. Return "" if there is none.

        A command whose work was done already (`grep -q x f || echo x >> f`) prints nothing. A program that reads a
        file prints the words of the file, which may also be words of the command."""
        quiet = not (printed_words(self) or self.changed_something)
        if self.status is not CallStatus.OK or not (self.masked or quiet):
            return ""
        shown = self.output if self.masked and not self.only_looked else ""
        printed = "\n".join(filter(None, (self.error_output.strip(), shown.strip())))
        if failure_class(printed) is FailureClass.ENVIRONMENTAL or _TRACEBACK in printed:
            return printed
        if not (self.masked and quiet) or self.only_looked:
            return ""
        reads = any(each.removeprefix(_SHELL) in _READING_PROGRAMS for each in self.identity)
        return printed if self.error_output.strip() or not reads else ""

    @property
    def failure_class(self) -> FailureClass:
        """Return the class of the call's failure. It is environmental if the call was interrupted or not allowed,
        or if something was missing or forbidden. Otherwise it is logical."""
        if (
            self.status in (CallStatus.TIMEOUT, CallStatus.INTERRUPTED, CallStatus.RUNNING)
            or self.withheld_by is not None
            or self.dropped
        ):
            return FailureClass.ENVIRONMENTAL
        # the model has chosen a program that does not exist
        if self.status is CallStatus.REFUSED or self.exit_code == _NO_PROGRAM:
            return FailureClass.LOGICAL
        if (self.reason or "").startswith(_OWN_ABSENCE):
            return FailureClass.ENVIRONMENTAL
        return failure_class("\n".join((self.reason or "", self.error_output, self.output)))

    @property
    def met_the_world(self) -> bool:
        """Return whether the call failed because of its environment."""
        return self.went_wrong and self.failure_class is FailureClass.ENVIRONMENTAL

    @property
    def absences(self) -> tuple[str, ...]:
        """Return the lines in the output of a failed call that report missing files."""
        if self.status is not CallStatus.ERROR:
            return ()
        reason = self.reason or ""
        if reason.startswith(_OWN_ABSENCE):
            return (reason.partition(";")[0],)  # the remaining lines list files that exist
        lines = "\n".join((reason, self.error_output, self.output)).splitlines()
        return tuple(line for line in lines if says_absent(line))

    @property
    def list_lengths(self) -> tuple[int, ...]:
        """Return the lengths of the Python or JSON lists that are at the ends of output lines.

        Empty lists are left out."""
        lists: list[int] = []
        for line in map(str.rstrip, self.output.splitlines()):
            if not line.endswith("]") or "[" not in line or "\\" in line:  # Python warns about some escapes
                continue
            for read in (json.loads, ast.literal_eval):
                with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
                    value: object = read(line[line.index("[") :])
                    lists += [len(cast("list[object]", value))] if isinstance(value, list) else []
                    break
        return tuple(filter(None, lists))

    def line(self) -> str:
        """Return the call in one line, as `tool: input → first 200 characters of the output`."""
        shown = self.output if self.status is CallStatus.OK else (self.reason or self.error_output or self.output)
        return f"{self.tool}: {self.input} → {shown[:200]}"


def printed_words(call: ToolCall) -> frozenset[str]:
    """Return the words that a call has printed and that are not in its input."""
    return frozenset(call.output.casefold().split()) - frozenset(call.input.casefold().split())


def falls_short(call: ToolCall) -> bool:
    """Return whether a call did not do all of what it was to do, by its own record."""
    ended_badly = call.status in (CallStatus.TIMEOUT, CallStatus.INTERRUPTED, CallStatus.RUNNING)
    withheld = call.withheld_by is not None or bool(call.dropped)
    error = call.status is CallStatus.ERROR and not call.says_no
    return ended_badly or withheld or error or bool(call.hidden_error)


def standing_failure(calls: Sequence[ToolCall]) -> int:
    """Return the number of the last call that fell short and for which no later call has made up. Return 0 if there
    is none.

    A later call that succeeds makes up for it if it changed something or is of the same kind (tool and program).
    For a call that only read, any later success is enough. The same change makes up for a change that was withheld.
    For a running process, it is a call that names the process. If every call was refused, the last one is
    returned."""
    if calls and all(call.never_ran for call in calls):
        return len(calls)
    for number in range(len(calls), 0, -1):
        call = calls[number - 1]
        if falls_short(call) and not any(_makes_good(each, call) for each in calls[number:]):
            return number
    return 0


def _makes_good(later: ToolCall, call: ToolCall) -> bool:
    if later.status is not CallStatus.OK or falls_short(later):
        return False
    again = (later.tool, later.input) == (call.tool, call.input)
    if call.withheld_by is not None or call.dropped:
        return again or (bool(call.dropped) and frozenset(later.changes).issuperset(call.dropped))
    if call.status is CallStatus.RUNNING:
        return call.process in later.input
    looked = call.looked_in_vain if call.went_wrong else call.only_looked
    return again or looked or later.changed_something or _kinds(later) >= _kinds(call)


def _kinds(call: ToolCall) -> frozenset[tuple[str, str]]:
    """Return the kinds of a call: its tools, and its programs with the plain words that follow them. `git push` is
    thus of another kind than `git status`."""
    behind = _words_behind(call.target.split())
    names = (name.partition(":")[2] or name for name in call.identity)
    return frozenset((name, word if word.isalpha() else "") for name in names for word in behind.get(name, ("",)))


def _words_behind(words: Sequence[str]) -> dict[str, set[str]]:
    """Return, for each word of a command, the set of words that directly follow it."""
    found = defaultdict[str, set[str]](set)
    for word, behind in pairwise((*words, "")):
        found[word].add(behind)
    return found


def only_shows(program: str, *behind: str) -> bool:
    """Return whether a program of the shell only shows something. `behind` are the words that follow it."""
    return program in _SHOWING_PROGRAMS or (program == "git" and _GIT_SHOWS.issuperset(behind or ("",)))


def identities_of(calls: Iterable[ToolCall]) -> KeysView[str]:
    """Return each identity once, in the order of the calls."""
    return dict.fromkeys(identity for call in calls for identity in call.identity).keys()


class CallEffects(StrEnum):
    """How far the effects of a call reach. This decides what a resumed task does with a call that a crash
    interrupted.

    `none`: the call only reads, and may be run again. `staged`: the call changes only the workspace of the task.
    Its effects are still there, and artoo does not repeat it. `outside`: the call uses other programs, services,
    foreign code, or commands without a sandbox. Its effects are not known."""

    NONE = "none"
    STAGED = "staged"
    OUTSIDE = "outside"


class ToolStarted(Contract):
    """A record by R3 (executor) that a tool call starts now. The ToolCalled with the same `act` records its end.

    `act` is unique within the task. It stays the same when the task is run again from its log. `input` is shortened
    as in ToolCall. `digest` (the sha256 of the tool and the whole input) is set if `effects` is `outside`. If the
    effects of a call become further-reaching (for example if its command may now run without a sandbox), a second
    start is recorded."""

    subtask_id: str
    attempt: int
    act: str
    tool: str
    input: str = ""
    effects: CallEffects
    digest: str = ""


class ToolCalled(Contract):
    """A record by R3 (executor) that a tool call has ended. The records are in the order in which the calls ended.

    `act` has the same meaning as in ToolStarted. A refused call has an `act` but no ToolStarted. In logs of version
    0.1, `act` is empty."""

    subtask_id: str
    attempt: int
    call: ToolCall
    act: str = ""


class ExecutionResult(Contract):
    """The result of an executor's attempt. `output` is a claim, and `tool_calls` are the evidence for it. R3 → R4a.

    `tool_calls` are the calls of all attempts at the subtask, in order. The number of a call is its index + 1.
    `attempt_from` is the index of the first call of this attempt. `verbatim`: true if the output is exactly the
    output (or the product) of the call that `sources` names. If it is false, `sources` and `failures` are claims of
    a model about its answer, and decide nothing. `cannot`: the executor claims that the subtask cannot be done.
    `output` is then the reason. `uncertain`: no step led to a result. `stuck`: no step led to a result, and no new
    call was made either, so another attempt would be the same. `infrastructure` says that the time of the subtask
    is over, which no retry in the fast loop can change. `small_model`: true if the steps came from a model that is
    known to be small. `glance` is the listing of the directory in the first prompt. It is set if the listing was
    made again since the plan, because other subtasks may have changed files. `heard` are the ids of the user's
    messages that the model has read."""

    subtask_id: str
    attempt: int = Field(ge=1)
    status: Literal["completed", "cannot", "uncertain", "failed"]
    output: str = ""
    sources: tuple[int, ...] = ()
    failures: tuple[int, ...] = ()
    verbatim: bool = False
    tool_calls: tuple[ToolCall, ...] = ()
    attempt_from: int = Field(default=0, ge=0)
    stuck: bool = False
    infrastructure: str | None = None
    small_model: bool = False
    glance: Glance | None = None
    heard: tuple[str, ...] = ()

    @property
    def put_out_by(self) -> int | None:
        """Return the number of the call that printed a verbatim output. If a log does not name the call, return the
        last one."""
        if not self.verbatim or not self.tool_calls:
            return None
        named = self.sources[-1] if self.sources else len(self.tool_calls)
        return named if 1 <= named <= len(self.tool_calls) else None

    @property
    def attempt_calls(self) -> tuple[ToolCall, ...]:
        """Return only the calls of this attempt."""
        return self.tool_calls[self.attempt_from :]


class DecidedBy(StrEnum):
    """How a criterion was decided, the strongest way first (SPEC section 3). `nobody`: nothing decided it, so the
    verdict is open."""

    CHECK = "check"
    FACT = "fact"
    AGREEMENT = "agreement"
    JUDGEMENT = "judgement"
    NOBODY = "nobody"

    @property
    def assurance(self) -> Assurance:
        """Return the assurance of a verdict that was decided in this way."""
        return _ASSURES[self]


_ASSURES = {
    DecidedBy.CHECK: Assurance.CHECKED,
    DecidedBy.FACT: Assurance.CHECKED,
    DecidedBy.AGREEMENT: Assurance.AGREED,
    DecidedBy.JUDGEMENT: Assurance.JUDGED,
    DecidedBy.NOBODY: Assurance.UNVERIFIED,
}


class CriterionVerdict(Contract):
    """The verdict on one criterion. `failed_attempts` of all `attempts` is the fraction k/N in the paper.

    `open`: nothing has decided the criterion. It counts as passed in D, and `decided_by` is `nobody`. `evidence` is
    for models and programs, and is English if code wrote it. If code found the reason, `reason` is the same as a
    typed value. `check` is the check that decided, if a check did. `identities` are the tools that a failing
    verdict names as the cause. `accountable` is the role that is accountable for the criterion (paper, Appendix C).
    `blameless`: true if the finding blames no tool, so that no tool is blocked and memory learns nothing against
    one. This is so for the findings in `BLAMES_NOBODY`, and for a check of the planner (R2) that failed although
    every call succeeded."""

    criterion: str
    mode: Mode = Mode.PLAUSIBLE
    verdict: Literal["pass", "fail", "open"]
    failure_class: FailureClass | None = None
    evidence: str = ""
    reason: Reason | None = None
    check: str = ""
    decided_by: DecidedBy = DecidedBy.FACT
    failed_attempts: int = Field(default=0, ge=0)
    attempts: int = Field(default=1, ge=1)
    identities: tuple[str, ...] = ()
    accountable: Role = Role.EXECUTOR
    contradicted: bool = False
    blameless: bool = False

    @property
    def of_world(self) -> bool:
        """Return whether the criterion failed because of the environment."""
        return self.failure_class is FailureClass.ENVIRONMENTAL


def assurance_of(verdicts: Iterable[CriterionVerdict]) -> Assurance:
    """Return the assurance of the weakest of these verdicts. Return `unverified` if there are none."""
    return weakest(verdict.decided_by.assurance for verdict in verdicts)


class CriterionJudged(Contract):
    """A record that a verdict was given. R4a and R4b (the validators) publish each of their verdicts."""

    subtask_id: str | None = None
    attempt: int = 1
    verdict: CriterionVerdict


class CorrectionSignal(Contract):
    """What is wrong in an attempt and how to fix it. Each mistake is listed once. R4a → R3, at most `max_retries`
    times."""

    subtask_id: str
    attempt: int = Field(ge=1)
    what_was_wrong: str
    what_to_do: str
    failed_criterion: str
    failure_class: FailureClass
    prior_tool_calls: tuple[str, ...] = ()


class GapPoint(Contract):
    """The share of the criteria that one attempt met, and the criteria that it did not meet."""

    attempt: int
    score: float = Field(ge=0, le=1)
    unmet_criteria: tuple[str, ...] = ()
    failure_class: FailureClass | None = None


class SubTaskOutcome(Contract):
    """The outcome of a subtask in the fast loop. R4a → dispatcher, R4b. `infrastructure` has the same meaning as in
    ExecutionResult.

    `assurance` is that of its weakest criterion. `open` are the criteria that nothing decided. `hopeless`: true if
    the executor claims that the subtask cannot be done and this was not refuted. No other plan can help then.
    `heads`: those parts of files that the executor was shown before its first call and that no call has read.
    `heard` has the same meaning as in ExecutionResult. `absent`: files that the task and the output name although
    they do not exist. `empty`: files that the output names and that are empty. `failures` is used only in logs of
    earlier versions."""

    subtask_id: str
    parent_task_id: str
    status: Literal["matched", "failed"]
    intent: str = ""
    output: str = ""
    failure_reason: str | None = None
    gap_trajectory: tuple[GapPoint, ...] = ()
    criteria_verdicts: tuple[CriterionVerdict, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()
    failures: tuple[int, ...] = ()
    infrastructure: str | None = None
    hopeless: bool = False
    heads: str = ""
    assurance: Assurance = Assurance.UNVERIFIED
    open: tuple[str, ...] = ()
    heard: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    empty: tuple[str, ...] = ()

    @property
    def texts(self) -> tuple[str, ...]:
        """Return the output of the subtask, and the inputs, outputs and reasons of its calls."""
        calls = (text for call in self.tool_calls for text in (call.input, call.output, call.error_output))
        reasons = (call.reason or "" for call in self.tool_calls)
        return (self.output, *calls, *reasons)

    @property
    def confirmed(self) -> bool:
        """Return whether a criterion of this subtask has passed."""
        return any(verdict.verdict == "pass" for verdict in self.criteria_verdicts)

    @property
    def done(self) -> bool:
        """Return whether the work is done. It is not if no criterion confirms it and a call fell short."""
        return self.status == "matched" and (self.confirmed or not standing_failure(self.tool_calls))

    @property
    def refused(self) -> bool:
        """Return whether consent was missing, because a user said no or because no user could approve the last
        operation."""
        said_no = any(call.withheld_by == "person" for call in self.tool_calls)
        unanswered = bool(self.tool_calls) and self.tool_calls[-1].withheld_by is not None
        return self.status == "failed" and (said_no or unanswered)

    @property
    def corrections(self) -> int:
        """Return how often the fast loop corrected this subtask."""
        return max(0, len(self.gap_trajectory) - 1)
