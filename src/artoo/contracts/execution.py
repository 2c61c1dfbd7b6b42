"""Messages between executor (R3) and validator (R4a), call records, and how much output models are shown.

They include the outcome of a subtask.
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

# Characters of a tool's output that are kept, half from its start and half from its end (SPEC section 2): for a
# small model, and at most for a model with a large window.
OUTPUT_KEPT = 4_000
MOST_OUTPUT_SHOWN = 40_000


# Characters of a verdict's evidence.
EVIDENCE_KEPT = 2_000

# First words of the error of artoo's own file tools for a missing path.
_OWN_ABSENCE = "there is no "
# Exit code of a shell that finds no program of that name, or a program without its libraries.
_NO_PROGRAM = 127
# First line of an error report of Python.
_TRACEBACK = "Traceback (most recent call last)"
_SHELL = "shell:"
_READING_TOOLS = frozenset(
    ("read_file", "find_files", "search_text", "find_text", "glob", "search", "web_search", "web_fetch")
)
_TEXT_PROGRAMS = (
    "cat cksum cmp column cut diff egrep fgrep grep head jq md5sum nl rg sha256sum sort tac tail tr uniq wc"
)
_STATE_PROGRAMS = "date du file find id locate ls mdfind pgrep ps pwd readlink realpath stat tree uname whoami"
# Programs that change nothing and print information that is not in their command.
_READING_PROGRAMS = frozenset((*_TEXT_PROGRAMS.split(), *_STATE_PROGRAMS.split()))
# Programs that only show something; if one fails, it found nothing.
_SHOWING_PROGRAMS = _READING_PROGRAMS | {"[", "basename", "command", "dirname", "echo", "printf", "test", "which"}
_GIT_SHOWS = frozenset(
    ("blame", "describe", "diff", "grep", "log", "ls-files", "rev-list", "rev-parse", "shortlog", "show", "status")
)
_WRITES = frozenset((">", ">>", "&>", ">|"))
_ENDS_ITSELF, _BRACKETS = frozenset(("exit", "return")), "(){};"

WithheldBy = Literal["person", "nobody"]
"""Who refused an operation: a user, or artoo because no user could be asked."""


class CallStatus(StrEnum):
    """The possible results of a tool call. Only `ok` can support a claim that something was done.

    `running`: the call timed out and its command continues as a process, whose result is not known yet."""

    OK = "ok"
    ERROR = "error"
    RUNNING = "running"
    TIMEOUT = "timeout"
    INTERRUPTED = "interrupted"
    REFUSED = "refused"

    @property
    def failed(self) -> bool:
        """Check whether the call ran and failed."""
        return self in (CallStatus.ERROR, CallStatus.TIMEOUT, CallStatus.INTERRUPTED)


class ToolCall(Contract):
    """A record of one tool call, against which claims are checked.

    `identity` is the unit of blocking: the tool's name, and for the shell each program (`shell:find`). `target`
    is the main input: a path, query or URL; for the shell the normalised command. `ran` is the command that
    really ran if it differs from `input`. `output` and `error_output` are cut to head and tail; `total_bytes`
    counts all bytes of both streams. `result_count` is set by searches. `changes` are the paths that the call
    created or changed; `bookkeeping` is true if it changed git's own files. `dropped` are the changes that were
    withheld; `withheld_by` says who refused them. `self_contained`: the code that ran could read nothing but its
    own text. `process` is the id of the process that still ran when the call ended. `overlapped`: calls or
    processes of other subtasks ran at the same time, so some of `changes` may be theirs, and their records name
    these paths too. `masked`: the command continues after an error of one of its programs, so its exit code may
    hide that error."""

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
        """Check whether the call was refused before it did anything, for another reason than missing consent: a
        block, a repeated call or bad arguments. Such a call proves nothing about its tool and its target."""
        return self.status is CallStatus.REFUSED and self.withheld_by is None and not self.dropped

    @property
    def went_wrong(self) -> bool:
        """Check whether the call ended without success. A command that still runs has not ended."""
        return self.status not in (CallStatus.OK, CallStatus.RUNNING)

    @property
    def changed_something(self) -> bool:
        """Check whether the call changed files, or git's own files."""
        return bool(self.changes) or self.bookkeeping

    @property
    def says_no(self) -> bool:
        """Check whether the call may be a search, a test or a comparison with a negative result: its exit code is
        1, and neither the system nor Python reports an error."""
        if self.status is not CallStatus.ERROR or self.exit_code != 1:
            return False  # return early, because this runs for every shown call and the search below is slow
        told = bool(self.output.strip()) or not self.error_output.strip()
        error = _TRACEBACK in self.error_output or failure_class(self.error_output) is FailureClass.ENVIRONMENTAL
        return told and not error

    @property
    def only_looked(self) -> bool:
        """Check whether the call used a reading tool, or only shell programs that show or print something."""
        words = self.target.split()
        if self.changed_something or not _WRITES.isdisjoint(words):
            return False
        behind = _words_behind(words)
        programs = (each.removeprefix(_SHELL) for each in self.identity if each.startswith(_SHELL))
        others = {each for each in self.identity if not each.startswith(_SHELL)}
        return others <= _READING_TOOLS and all(only_shows(one, *behind.get(one, ())) for one in programs)

    @property
    def looked_in_vain(self) -> bool:
        """Check whether the call was read-only and failed. A command that sets its exit code itself (`exit 1`) is
        excluded, because that code may mean anything."""
        words = {word.strip(_BRACKETS) for word in self.target.split()}
        return self.went_wrong and self.only_looked and _ENDS_ITSELF.isdisjoint(words)

    @property
    def hidden_error(self) -> str:
        """Return the error that the call printed although its exit code is 0; empty if there is none.

        A command whose work was already done (`grep -q x f || echo x >> f`) prints nothing. A reading program
        prints words of a file, which may also be words of the command."""
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
        """Return the class of the call's failure: environmental if it was interrupted, not allowed, or met
        something missing or forbidden; otherwise logical."""
        if (
            self.status in (CallStatus.TIMEOUT, CallStatus.INTERRUPTED, CallStatus.RUNNING)
            or self.withheld_by is not None
            or self.dropped
        ):
            return FailureClass.ENVIRONMENTAL
        if self.status is CallStatus.REFUSED or self.exit_code == _NO_PROGRAM:  # the model chose a missing program
            return FailureClass.LOGICAL
        if (self.reason or "").startswith(_OWN_ABSENCE):
            return FailureClass.ENVIRONMENTAL
        return failure_class("\n".join((self.reason or "", self.error_output, self.output)))

    @property
    def met_the_world(self) -> bool:
        """Check whether the call failed because of its environment."""
        return self.went_wrong and self.failure_class is FailureClass.ENVIRONMENTAL

    @property
    def absences(self) -> tuple[str, ...]:
        """Return the lines of a failed call that report missing files."""
        if self.status is not CallStatus.ERROR:
            return ()
        reason = self.reason or ""
        if reason.startswith(_OWN_ABSENCE):
            return (reason.partition(";")[0],)  # the rest lists files that exist
        lines = "\n".join((reason, self.error_output, self.output)).splitlines()
        return tuple(line for line in lines if says_absent(line))

    @property
    def list_lengths(self) -> tuple[int, ...]:
        """Return the lengths of the Python or JSON lists at the ends of output lines.

        Empty lists are left out."""
        lists: list[int] = []
        for line in map(str.rstrip, self.output.splitlines()):
            if not line.endswith("]") or "[" not in line or "\\" in line:  # Python warns of some escapes
                continue
            for read in (json.loads, ast.literal_eval):
                with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
                    value: object = read(line[line.index("[") :])
                    lists += [len(cast("list[object]", value))] if isinstance(value, list) else []
                    break
        return tuple(filter(None, lists))

    def line(self) -> str:
        """Return the call as one line: `tool: input → first 200 characters of the output`."""
        shown = self.output if self.status is CallStatus.OK else (self.reason or self.error_output or self.output)
        return f"{self.tool}: {self.input} → {shown[:200]}"


def printed_words(call: ToolCall) -> frozenset[str]:
    """Return the words that a call printed and that are not in its input."""
    return frozenset(call.output.casefold().split()) - frozenset(call.input.casefold().split())


def falls_short(call: ToolCall) -> bool:
    """Check whether a call did not do all of its task, according to its own record."""
    ended_badly = call.status in (CallStatus.TIMEOUT, CallStatus.INTERRUPTED, CallStatus.RUNNING)
    withheld = call.withheld_by is not None or bool(call.dropped)
    error = call.status is CallStatus.ERROR and not call.says_no
    return ended_badly or withheld or error or bool(call.hidden_error)


def standing_failure(calls: Sequence[ToolCall]) -> int:
    """Return the number of the last call that fell short and that no later call made good; 0 if there is none.

    A later successful call makes a call good if it changed something or is of the same kind (tool and program).
    Any later success makes a read-only call good. A withheld change is made good by the same change, and a
    running process by a call that names it. If every call was refused, the result is the last one."""
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
    """Return the tools of a call, and its programs with the plain words that follow them, so that `git push` is a
    different kind of call from `git status`."""
    behind = _words_behind(call.target.split())
    names = (name.partition(":")[2] or name for name in call.identity)
    return frozenset((name, word if word.isalpha() else "") for name in names for word in behind.get(name, ("",)))


def _words_behind(words: Sequence[str]) -> dict[str, set[str]]:
    """Map each word of a command to the set of words that directly follow it."""
    found = defaultdict[str, set[str]](set)
    for word, behind in pairwise((*words, "")):
        found[word].add(behind)
    return found


def only_shows(program: str, *behind: str) -> bool:
    """Check whether a program of the shell only shows something; `behind` are the words that follow it."""
    return program in _SHOWING_PROGRAMS or (program == "git" and _GIT_SHOWS.issuperset(behind or ("",)))


def identities_of(calls: Iterable[ToolCall]) -> KeysView[str]:
    """Return each identity once, in the order of the calls."""
    return dict.fromkeys(identity for call in calls for identity in call.identity).keys()


class CallEffects(StrEnum):
    """The reach of a call, which decides how a resumed task treats a call that a crash interrupted.

    `none`: the call only reads and may be run again. `staged`: it changes only the task's workspace, so its
    effects remain there and artoo does not repeat it. `outside`: it uses other programs, services, foreign code
    or commands without a sandbox, so its effects are unknown."""

    NONE = "none"
    STAGED = "staged"
    OUTSIDE = "outside"


class ToolStarted(Contract):
    """A record by R3 that a tool call starts now. The ToolCalled with the same `act` ends it.

    `act` is unique within the task and stays the same when the task is run again from its log. `input` is cut as
    in ToolCall. `digest` (sha256 of tool and whole input) is set if `effects` is `outside`. A call whose reach
    grows (a command that may now run without a sandbox) is recorded as started a second time."""

    subtask_id: str
    attempt: int
    act: str
    tool: str
    input: str = ""
    effects: CallEffects
    digest: str = ""


class ToolCalled(Contract):
    """A record by R3 that a tool call ended, in the order in which the calls ended.

    `act` is as in ToolStarted. A refused call has an `act` but no ToolStarted. In logs of version 0.1 it is
    empty."""

    subtask_id: str
    attempt: int
    call: ToolCall
    act: str = ""


class ExecutionResult(Contract):
    """The executor's result. `output` is a claim; `tool_calls` are the evidence. R3 → R4a.

    `tool_calls` are the calls of all attempts of the subtask, in order; a call's number is its index + 1, and
    `attempt_from` is the index of this attempt's first call. `verbatim`: the output is exactly the output (or the
    product) of the call that `sources` names. Otherwise `sources` and `failures` are a model's claims about its
    answer, and decide nothing. `cannot`: the executor claims that the subtask cannot be done; `output` is the
    reason. `uncertain`: no step led to a result. `stuck`: in addition no new call was made, so another attempt
    would be the same. `infrastructure` says that the subtask's time ran out, which no retry in the fast loop can
    fix. `small_model`: the steps came from a model that is known to be small. `glance` is the directory listing
    in the first prompt if it was renewed since the plan, because other subtasks may have changed files. `heard`
    are the ids of the user's messages that the model has read."""

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
        """Return the number of the call that printed a verbatim output; the last call if a log names none."""
        if not self.verbatim or not self.tool_calls:
            return None
        named = self.sources[-1] if self.sources else len(self.tool_calls)
        return named if 1 <= named <= len(self.tool_calls) else None

    @property
    def attempt_calls(self) -> tuple[ToolCall, ...]:
        """Return only the calls of this attempt."""
        return self.tool_calls[self.attempt_from :]


class DecidedBy(StrEnum):
    """The kinds of decisions on a criterion, strongest first (SPEC section 3). `nobody`: the verdict is open."""

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
    """The verdict on one criterion. `failed_attempts` of `attempts` is the paper's k/N.

    `open`: nothing decided the criterion, so it counts as passed in D, and `decided_by` is `nobody`. `evidence`
    is for models and programs, and in English if code wrote it; `reason` is the same as a typed value if code
    found it. `check` is the check that decided, if any. `identities` are the tool identities that a failing
    verdict cites, `accountable` is the role that answers for it (paper, Appendix C). `blameless`: the finding
    blames no tool (`BLAMES_NOBODY`, or a check of R2's although every call succeeded), so no tool is blocked and
    nothing is learnt against a tool."""

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
        """Check whether the criterion failed because of the environment."""
        return self.failure_class is FailureClass.ENVIRONMENTAL


def assurance_of(verdicts: Iterable[CriterionVerdict]) -> Assurance:
    """Return the assurance of the weakest of these verdicts; `unverified` when there are none."""
    return weakest(verdict.decided_by.assurance for verdict in verdicts)


class CriterionJudged(Contract):
    """A record that a verdict was reached. R4a and R4b publish each verdict."""

    subtask_id: str | None = None
    attempt: int = 1
    verdict: CriterionVerdict


class CorrectionSignal(Contract):
    """The mistakes of an attempt and how to fix them, each listed once. R4a → R3, at most `max_retries` times."""

    subtask_id: str
    attempt: int = Field(ge=1)
    what_was_wrong: str
    what_to_do: str
    failed_criterion: str
    failure_class: FailureClass
    prior_tool_calls: tuple[str, ...] = ()


class GapPoint(Contract):
    """The share of criteria that one attempt met, and the unmet criteria."""

    attempt: int
    score: float = Field(ge=0, le=1)
    unmet_criteria: tuple[str, ...] = ()
    failure_class: FailureClass | None = None


class SubTaskOutcome(Contract):
    """The outcome of a subtask in the fast loop. R4a → dispatcher, R4b. `infrastructure` as in ExecutionResult.

    `assurance` is the assurance of its weakest criterion; `open` are the criteria that nothing decided.
    `hopeless`: the executor claims that the subtask cannot be done and was not refuted, so no other plan can
    help. `heads`: the contents of files that were shown before the first call, if no call read the file. `heard`
    as in ExecutionResult. `absent`: missing files that the task and the output name; `empty`: empty files that
    the output names. `failures` is used only in logs of earlier versions."""

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
        """Check whether a criterion of this subtask has passed."""
        return any(verdict.verdict == "pass" for verdict in self.criteria_verdicts)

    @property
    def done(self) -> bool:
        """Check whether the work is done. It is not done if no criterion confirms it and a call fell short."""
        return self.status == "matched" and (self.confirmed or not standing_failure(self.tool_calls))

    @property
    def refused(self) -> bool:
        """Check whether consent was missing: a user said no, or no user could approve the last operation."""
        said_no = any(call.withheld_by == "person" for call in self.tool_calls)
        unanswered = bool(self.tool_calls) and self.tool_calls[-1].withheld_by is not None
        return self.status == "failed" and (said_no or unanswered)

    @property
    def corrections(self) -> int:
        """Return how often the fast loop corrected this subtask."""
        return max(0, len(self.gap_trajectory) - 1)
