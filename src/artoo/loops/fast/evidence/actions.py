"""Rules for clauses that say that something was done, or was not done."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from artoo.contracts.execution import CallStatus
from artoo.loops.fast.evidence.calls import GOOD, CallView, Standing, repaired
from artoo.loops.fast.evidence.case import BROKEN, Case, contradiction
from artoo.loops.fast.evidence.claims import Clause
from artoo.loops.fast.evidence.effects import VERDICTS, WRITES, Effect
from artoo.loops.fast.evidence.figures import read_lines
from artoo.loops.fast.evidence.finding import Finding
from artoo.loops.fast.evidence.names import contains_word, is_file_like, mentions, without_names
from artoo.loops.fast.evidence.statements import opposite
from artoo.loops.fast.evidence.trouble import Cause, causes_in
from artoo.loops.fast.evidence.words import words

_NO_TESTS = re.compile(
    r"no tests? (?:ran|were run|found|files)|collected 0 items|\b0 (?:tests?|passing|passed)\b|ran 0 tests"
    r"|^[= ]*\d+ (?:skipped|deselected)(?:, \d+ (?:skipped|deselected|warnings?))* in [\d.]+ ?s",
    re.I | re.M,
)
_CODE = re.compile(
    r"\.(?:py|pyi|js|jsx|ts|tsx|c|cc|cpp|h|hpp|rs|go|java|kt|rb|php|sh|cs|swift|toml|cfg"
    r"|ini|sql|lock|mk|gradle|ya?ml)$|(?:^|/)(?:Makefile|Dockerfile)$"
)
_SKIPPED = re.compile(r"\bskipped\b|跳过", re.I)
_OTHER = re.compile(r"\b(?:other|else|further|additional|more|rest|remaining)\b|其他|其它|别的|另外|其余", re.I)


def done(clause: Clause, case: Case) -> Iterator[Finding]:
    """Findings against a clause that says that something was done or went well."""
    if clause.attributed and _is_quoted(clause, case):
        return
    if not clause.effects:
        yield from opposite(clause, case)
        yield from _went_well(clause, case)
    for wanted in dict.fromkeys(clause.effects):
        yield from _was_done(wanted, clause, case)
    if clause.universal:
        yield from _everything(clause, case)


def _is_quoted(clause: Clause, case: Case) -> bool:
    """Whether something that was read says most of what the clause says that it says."""
    words = {
        word
        for word in re.findall(r"[a-z]{4,}|[一-鿿]{2}", without_names(clause.text).lower())
        if word not in _SAYING
    }
    for view in case.good:
        text = "\n".join(read_lines(view)).lower() if not view.acts else ""
        if text and words and sum(word in text for word in words) >= 0.6 * len(words):
            return True
    return False


_SAYING = frozenset(
    words(
        """according says said states that file page document reports shows readme reads line lists
        mentions contains this with they have been were"""
    )
)


def _went_well(clause: Clause, case: Case) -> Iterator[Finding]:
    """`Done.`, `Everything worked`: nothing may have gone wrong for good, and something must have gone well."""
    acting = [view for view in case.views if view.acts]
    bad = [view for view in case.unrepaired if view.acts or not acting]
    if bad and (acting or bad[-1] is case.views[-1]):
        yield contradiction("failed_action", f"“{clause.text}”, but {bad[-1].failure}", bad)
    elif not case.good:
        yield contradiction("no_success", f"“{clause.text}”, but no call ended well", case.views)


def _was_done(wanted: frozenset[Effect], clause: Clause, case: Case) -> Iterator[Finding]:
    able = [view for view in case.views if view.effects & wanted]
    if not able:
        yield contradiction(
            "never_done", f"“{clause.text}”, but no call did that ({_kinds(wanted)})", case.unrepaired
        )
        return
    named = [name for name in clause.names if is_file_like(name)]
    if not named:
        yield from _judged(clause, _spoken_of(clause, able) if not wanted & VERDICTS else able, case)
    for name in named:
        about = _about(name, able, case)
        if not about:
            yield contradiction("wrong_target", f"“{clause.text}”, but what was done was not done to {name}", able)
        else:
            yield from _judged(clause, about, case)
            if not re.search(r"\bempty\b|空", clause.text):
                yield from _refuted(name, wanted, about, case)
    if wanted & VERDICTS:
        yield from _stale(wanted, clause, able, case)


def _spoken_of(clause: Clause, able: Sequence[CallView]) -> Sequence[CallView]:
    """The calls whose operands the clause speaks of, all of them when it speaks of none."""
    text = clause.text.lower()
    return [
        view for view in able if any(len(name) > 1 and contains_word(text, name.lower()) for name in view.operands)
    ] or able


def _about(name: str, able: Sequence[CallView], case: Case) -> list[CallView]:
    """The calls that worked on this name; a script of unknown nature may have, when the name turns up at all."""
    direct = [
        view
        for view in able
        if view.names(name) or mentions(view.said, name) or any(mentions(path, name) for path in view.call.dropped)
    ]
    if direct:
        return direct
    if all(view.effects <= VERDICTS | {Effect.EDIT, Effect.CREATE} for view in able) and any(
        mentions(view.asked, name) for view in case.views
    ):
        return [view for view in able if not view.operands]
    elsewhere = any(mentions(view.said + view.asked, name) for view in case.views)
    return [
        view
        for view in able
        if elsewhere and (view.opaque or any(word.dynamic for step in view.steps for word in step.words))
    ]


def _judged(clause: Clause, able: Sequence[CallView], case: Case) -> Iterator[Finding]:
    bad = [
        view
        for view in able
        if view.standing in BROKEN and not repaired(view, case.views) and not _spared(view, clause, case)
    ]
    if bad:
        yield contradiction("failed_action", f"“{clause.text}”, but {bad[-1].failure}", bad)
    elif not any(view.standing in GOOD for view in able) and not any(_spared(view, clause, case) for view in able):
        unknown = able[-1]
        identities = unknown.call.identity
        yield Finding(
            "hidden_outcome",
            f"“{clause.text}”, but whether it worked cannot be seen: {unknown.failure}",
            unknown.failure_class,
            identities,
        )
    elif any(effect == Effect.TEST for effects in clause.effects for effect in effects) and all(
        _NO_TESTS.search(view.said) for view in able
    ):
        yield contradiction("nothing_tested", f"“{clause.text}”, but no test ran", able)


_ONE_BY_ONE = frozenset(words("cp mv rm rmdir mkdir touch chmod ln"))
"""Programs that go on with their next operand when one failed, and complain of that one by name."""


def _failed_elsewhere(view: CallView, clause: Clause, case: Case) -> bool:
    """`cp a b c out/` that complained of c alone has copied a and b; the claim must tell of c."""
    if view.standing is not Standing.FAILED or view.call.exit_code != 1 or not clause.names or not view.complaints:
        return False
    if len(view.steps) != 1 or view.steps[0].program not in _ONE_BY_ONE:
        return False
    others = [name for name in view.operands if name not in clause.names and mentions(case.claim, name)]
    return all(any(mentions(line, name) for name in others) for line in view.complaints) and not any(
        mentions(line, name) for line in view.complaints for name in clause.names
    )


def _spared(view: CallView, clause: Clause, case: Case) -> bool:
    """Withheld changes speak only against the names that were withheld, complaints only against those they name."""
    if _failed_elsewhere(view, clause, case):
        return True
    if view.standing is not Standing.WITHHELD or not clause.names:
        return False
    return not any(mentions(path, name) for path in view.call.dropped for name in clause.names) and any(
        mentions(path, name) for path in view.call.changes for name in clause.names
    )


def _refuted(name: str, wanted: frozenset[Effect], about: Sequence[CallView], case: Case) -> Iterator[Finding]:
    """Looks that came after the act and show that it did not happen: still there, not there, nothing in it."""
    after = [view for view in case.views[about[-1].index + 1 :] if not view.acts]
    for view in after:
        shown = any(
            contains_word(line.lower(), name.lower().rsplit("/", 1)[-1]) for line in view.call.output.splitlines()
        )
        listing = any(
            step.program in ("ls", "find", "stat", "tree", "test") for step in view.steps
        ) or view.call.tool in ("glob", "file_search")
        if (
            wanted <= {Effect.DELETE, Effect.MOVE, Effect.UNINSTALL, Effect.EDIT, Effect.STOP}
            and Effect.DELETE in wanted
        ):
            if listing and shown and view.standing in GOOD:
                yield contradiction("still_there", f"{name} is still there: {view.failure}", about)
        elif wanted & WRITES and view.names(name) and _is_missing(view):
            yield contradiction("not_there", f"{name} is not there afterwards: {view.failure}", about)
        elif (
            wanted & WRITES
            and any(_is_empty(line, name) for line in view.call.output.splitlines())
            and Effect.DELETE not in wanted
        ):
            yield contradiction("empty_file", f"{name} is empty afterwards", about)


def _is_missing(view: CallView) -> bool:
    tested = any(step.program in ("test", "[", "ls", "stat") for step in view.steps)
    return Cause.ABSENT in causes_in("\n".join(view.complaints)) or (tested and view.standing is Standing.NEGATIVE)


def _is_empty(line: str, name: str) -> bool:
    """Whether a line of `ls -l`, `wc`, `du` or `stat` gives the named file a size of nothing."""
    if not contains_word(line, name.rsplit("/", 1)[-1]):
        return False
    fields = line.split()
    if re.match(r"[-dl][rwxsStT-]{9}", line.strip()):
        return len(fields) > 4 and fields[4] == "0"
    return (bool(fields) and fields[0] == "0") or re.search(r"\bempty\b|\b0 bytes\b", line) is not None


def _stale(wanted: frozenset[Effect], clause: Clause, able: Sequence[CallView], case: Case) -> Iterator[Finding]:
    """A test or build from before a change proves nothing about what came out of the change."""
    last = max((view.index for view in able if view.standing in GOOD), default=None)
    if last is None or (
        clause.earlier and not clause.universal and re.search(r"\bbefore\b|之前|原来", clause.text)
    ):
        return
    later = [
        view
        for view in case.views[last + 1 :]
        if view.acts and view.standing is Standing.DONE and not view.effects & wanted and _touches_code(view)
    ]
    if later:
        yield contradiction(
            "stale_evidence",
            f"“{clause.text}”, but {later[0].call.tool} `{later[0].call.target[:80]}` changed things afterwards",
            [case.views[last]],
        )


def _touches_code(view: CallView) -> bool:
    changed = view.changed
    return (
        any(_CODE.search(name) for name in changed)
        if changed
        else bool(view.effects & {Effect.EDIT, Effect.MERGE, Effect.RESTORE} and not view.opaque)
    )


def _everything(clause: Clause, case: Case) -> Iterator[Finding]:
    """All, every: one call that went wrong for good is one too many."""
    bad = [
        view
        for view in case.unrepaired
        if not (view.standing is Standing.PARTIAL and not view.complaints and not view.acts)
    ]
    relevant = [
        view
        for view in bad
        if not clause.effects or not view.acts or any(view.effects & wanted for wanted in clause.effects)
    ]
    if relevant:
        yield contradiction("not_all", f"“{clause.text}”, but {relevant[-1].failure}", relevant)


def _kinds(wanted: frozenset[Effect]) -> str:
    return ", ".join(sorted(wanted)[:3])


def denied(clause: Clause, case: Case) -> Iterator[Finding]:
    """Findings against a clause that says that something failed or was not done."""
    wrong = [
        view
        for view in case.views
        if view.standing not in GOOD or view.complaints or (view.empty_handed and not view.acts)
    ]
    for wanted in dict.fromkeys(clause.effects):
        able = [view for view in case.views if view.effects & wanted and not view.opaque]
        named = [name for name in clause.names if is_file_like(name)]
        about = [view for view in able if not named or any(view.names(name) for name in named)]
        if (
            about
            and all(view.standing is Standing.DONE for view in about)
            and not _OTHER.search(clause.text)
            and not any(view.acts for view in wrong)
            and not (_SKIPPED.search(clause.text) and any(_SKIPPED.search(view.said) for view in about))
        ):
            yield contradiction(
                "done_after_all", f"“{clause.text}”, but {about[-1].call.line()[:120]} was done", about
            )
    if clause.causes:
        yield from _blames(clause, case, wrong)


_ALIKE = (
    {Cause.DECLINED, Cause.PERMISSION},
    {Cause.ABSENT, Cause.COMMAND_MISSING},
    {Cause.TIME, Cause.NETWORK},
    {Cause.TIME, Cause.MEMORY},
)


def _blames(clause: Clause, case: Case, wrong: Sequence[CallView]) -> Iterator[Finding]:
    """A reason that the claim gives must be one that the evidence gives."""
    known: set[Cause] = set()
    for view in wrong:
        known |= causes_in("\n".join((view.said, *view.complaints)))
        known |= {Cause.TIME} if view.standing is Standing.INCOMPLETE else set()
        known |= {Cause.DECLINED} if view.call.status is CallStatus.REFUSED or view.call.dropped else set()
        known |= {Cause.ABSENT} if view.standing is Standing.NEGATIVE or view.empty_handed else set()
    for pair in _ALIKE:
        if known & pair and Cause.DECLINED not in known:
            known |= pair
    if not wrong:
        yield contradiction("nothing_failed", f"“{clause.text}”, but nothing failed", case.views)
    elif known and not clause.causes & known:
        yield contradiction(
            "wrong_reason", f"“{clause.text}”, but the evidence gives another reason: {wrong[-1].failure}", wrong
        )
