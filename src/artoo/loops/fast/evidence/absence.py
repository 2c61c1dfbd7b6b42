"""Rules for clauses that say that something is not there: a search must have ended well and found nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator

from artoo.loops.fast.evidence.calls import CallView, Standing
from artoo.loops.fast.evidence.case import Case, contradiction
from artoo.loops.fast.evidence.claims import Clause
from artoo.loops.fast.evidence.figures import read_lines
from artoo.loops.fast.evidence.finding import Finding
from artoo.loops.fast.evidence.names import contains_word, is_file_like, mentions
from artoo.loops.fast.evidence.statements import opposite
from artoo.loops.fast.evidence.trouble import Cause, causes_in
from artoo.loops.fast.evidence.words import words

_TOPIC = re.compile(
    r"\b(?:no|any|zero|0) (?:such )?(?:\w+ )?([A-Za-z][\w.]{2,})"
    r"|没有(?:找到|发现|任何|包含)*(?:任何)?的?([A-Za-z]\w{2,})",
    re.I,
)
_EMPTY = re.compile(r"\b(?:is|are|was|were) empty\b|为空|是空的", re.I)
_CALLED = re.compile(r"(?:\b(?:named|called) |名为|叫做?)[`'\"“]?([A-Za-z][\w.-]*)", re.I)
_NONE = re.compile(r"^\W*(?:\w+: )?no (\w{4,})(?! file or)", re.I | re.M)
_VAGUE = frozenset(
    words(
        """file files match matches matching result results entry entries such record records row rows line
        lines other more item items directory folder process longer occurrence occurrences found"""
    )
)
_SAFE_ROOTS = frozenset({".", "./", "~", "~/", "/", "$HOME", "*", ""})


def absent(clause: Clause, case: Case) -> Iterator[Finding]:
    """Findings against a clause that says that something does not exist, is not contained, was not found."""
    yield from opposite(clause, case)
    if any(_says_missing(view, name) for view in case.views for name in _things(clause, view)):
        return
    if any(_says_none(view, clause) for view in case.views if not view.acts):
        return
    if _told_zero(clause, case.said):
        return
    lookers = [view for view in case.good if not view.invented and (view.searches or not view.acts)] or [
        view for view in case.good if not view.invented
    ]
    if not lookers:
        yield contradiction(
            "error_is_no_absence", f"“{clause.text}”, but nothing was searched: {_last_failure(case)}", case.views
        )
        return
    yield from _incomplete(clause, case, lookers)
    yield from _unsearched(clause, lookers, case)
    yield from _other_word(clause, lookers)
    yield from _present(clause, lookers)


def _things(clause: Clause, view: CallView) -> list[str]:
    """What the clause says is not there, as far as the call's words name it; not the place in which it is not."""
    words = {word for word in re.findall(r"[\w.~/*-]{2,}", view.asked) if contains_word(clause.text, word)}
    return [thing for thing in {*clause.names, *words} if not _only_a_place(thing, clause.text)]


def _only_a_place(thing: str, text: str) -> bool:
    at = re.escape(thing)
    before = rf"\b(?:in|under|inside|within|from|of)\s+(?:the\s+)?(?:\w+\s+)?[`'\"]?{at}"
    after = (
        rf"{at}[`'\"]?\s*(?:(?:folder|directory|file|文件|目录)\s*)?(?:[里中内下]|为空|是空|(?:contains"
        r"|has|have|lists|includes|is empty)\b"
        r"|do(?:es)?(?: not|n't) (?:contain|have|include|list)\b)"
    )
    return re.search(f"{before}|{after}", text, re.I) is not None


def _told_zero(clause: Clause, said: str) -> bool:
    """`no warnings` beside `4 errors, 0 warnings`."""
    topic = _topic(clause.text)
    return topic is not None and re.search(rf"\b(?:0|no) {re.escape(topic)}", said, re.I) is not None


def _topic(text: str) -> str | None:
    """What there is none of, in the clause's own word."""
    words = [(match[1] or match[2]).rstrip(".").lower() for match in _TOPIC.finditer(text)]
    return next((word for word in words if word not in _VAGUE), None)


def _says_none(view: CallView, clause: Clause) -> bool:
    """The tool's own sentence that there is none: `no crontab for u`."""
    said = [match[1].lower()[:4] for match in _NONE.finditer(view.said)]
    return any(word in clause.text.lower() for word in said)


def _says_missing(view: CallView, name: str) -> bool:
    """The tool's own words that this very thing does not exist, or a `test -e` on it that said no."""
    lines = (view.call.error_output + "\n" + view.call.output + "\n" + (view.call.reason or "")).splitlines()
    if any(Cause.ABSENT in causes_in(line) and mentions(line, name) for line in lines):
        return True
    missing = Cause.ABSENT in causes_in(view.said)
    tested = (
        any(step.program in ("test", "[", "[[", "which") for step in view.steps)
        and view.standing is Standing.NEGATIVE
    )
    target = view.call.target if view.command is None else ""
    return (tested and view.names(name)) or (
        missing and bool(target) and mentions(target, name) and not view.searches
    )


def _last_failure(case: Case) -> str:
    return case.views[-1].failure if case.views else "no call"


def _incomplete(clause: Clause, case: Case, lookers: list[CallView]) -> Iterator[Finding]:
    """Searches that were cut short or shut out say nothing about what they did not see."""
    if case.admits:
        return
    for view in case.unrepaired:
        if view.acts or not (view.searches or view.command is None):
            continue
        later = [each for each in lookers if each.index > view.index]
        excused = Cause.ABSENT in causes_in(view.said) or Cause.COMMAND_MISSING in causes_in(view.said)
        if not (later and excused):
            yield contradiction(
                "incomplete_search", f"“{clause.text}”, but a search was incomplete: {view.failure}", [view]
            )
            return
    cut = [view for view in lookers if view.call.truncated]
    if cut and len(cut) == len(lookers):
        yield contradiction("truncated_search", f"“{clause.text}”, but the output was cut", cut)
    muted = [view for view in lookers if _muted(view)]
    if muted and len(muted) == len(lookers):
        yield Finding(
            "muted_search",
            f"“{clause.text}”, but errors of the search were thrown away",
            identities=muted[-1].call.identity,
        )


def _muted(view: CallView) -> bool:
    """A search of a named place whose errors and exit code were both discarded."""
    for step in view.steps:
        if step.program in ("grep", "rg", "find", "fd", "ls", "cat") and step.errors_discarded and not step.exposed:
            places = step.operands[:1] if step.program in ("find", "ls", "cat") else step.operands[1:]
            if any(place not in _SAFE_ROOTS for place in places):
                return True
    return False


def _unsearched(clause: Clause, lookers: list[CallView], case: Case) -> Iterator[Finding]:
    """What is said to be absent must have been looked for, by name or in a full listing."""
    for name in clause.names:
        words = list(re.findall(r"\w{2,}", name.lower()))
        sought = any(
            mentions(view.asked, name)
            or mentions(view.said, name)
            or any(word in view.asked.lower() for word in words if len(word) > 2 or not is_file_like(name))
            for view in lookers
        )
        if not sought and not any(_lists_everything(view) for view in lookers):
            yield contradiction("not_looked_for", f"“{clause.text}”, but nothing looked for {name}", lookers)


def _lists_everything(view: CallView) -> bool:
    if view.command is None:
        return view.call.tool in ("glob", "list_directory", "list_dir") and view.call.target.strip() in (
            "*",
            "**",
            "**/*",
            ".",
            "",
        )
    return any(
        step.program in ("ls", "tree", "find") and "-name" not in step.args and "-iname" not in step.args
        for step in view.steps
    )


_MARK = re.compile(r"(?<![\w.-])[A-Z][A-Z0-9_]{2,}(?![\w.-])")
"""TODO, FIXME, API_KEY: words that are searched for as they are written."""


def _other_word(clause: Clause, lookers: list[CallView]) -> Iterator[Finding]:
    """No TODO, where the search was for another such word."""
    for mark in _MARK.findall(clause.text):
        greps = [view for view in lookers if any(step.program in _GREPS for step in view.steps)]
        if not greps or len(greps) < len(lookers):
            continue
        sought = {word for view in greps for word in _MARK.findall(view.asked)}
        if sought and not any(mark.lower() in f"{view.asked}\n{view.said}".lower() for view in greps):
            yield contradiction(
                "not_looked_for",
                f"“{clause.text}”, but {', '.join(sorted(sought))} was looked for, not {mark}",
                greps,
            )


_GREPS = frozenset(words("grep egrep fgrep rg ag ack"))


def _present(clause: Clause, lookers: list[CallView]) -> Iterator[Finding]:
    """The evidence shows what the clause denies."""
    if any(view.empty_handed for view in lookers[-1:]):
        return
    shown_by = [view for view in lookers if view.call.output.strip() not in ("", "0", "total 0")]
    if (
        _EMPTY.search(clause.text)
        and shown_by
        and not any(step.program in ("ps", "stat") for step in shown_by[-1].steps)
    ):
        yield contradiction(
            "not_empty", f"“{clause.text}”, but there is: {shown_by[-1].call.output.strip()[:80]}", shown_by
        )
        return
    things = [name for name in clause.names if not _is_place(name, lookers)]
    things += [match[1].rstrip(".") for match in _CALLED.finditer(clause.text)]
    for view in lookers:
        lines = read_lines(view)
        shown = [thing for thing in things if any(contains_word(line.lower(), thing.lower()) for line in lines)]
        if shown:
            yield contradiction(
                "present_after_all", f"“{clause.text}”, but {shown[0]} is in the output of {view.call.tool}", [view]
            )
            return
    finders = [view for view in lookers if _specific(view)]
    if (
        finders
        and not things
        and not any(view.empty_handed for view in finders)
        and len(finders) == len([v for v in lookers if v.searches])
    ):
        yield contradiction(
            "found_after_all",
            f"“{clause.text}”, but the search found something: {finders[-1].call.output.strip()[:80]}",
            finders,
        )
        return
    topic = _topic(clause.text)
    if topic and any(_shows(line, topic) for view in lookers for line in read_lines(view)):
        yield contradiction("present_after_all", f"“{clause.text}”, but {topic} is in the output", lookers)


def _is_place(name: str, lookers: list[CallView]) -> bool:
    """Whether a name is where was looked, not what was looked for: an operand after the pattern, a read file."""
    for view in lookers:
        if view.command is None and not view.searches and mentions(view.call.target, name):
            return True
        for step in view.steps:
            places = (
                step.operands[1:]
                if step.program in ("grep", "egrep", "rg", "awk", "sed")
                else step.operands
                if step.program not in ("find",)
                else step.operands[:1]
            )
            if any(mentions(place, name) for place in (*places, *step.reads)):
                return True
    return False


def _specific(view: CallView) -> bool:
    """A search for something in particular, whose every result is a find."""
    if view.call.result_count is not None:
        return view.call.result_count > 0
    return any(
        (step.program in ("find", "fd") and {"-name", "-iname", "-regex", "-path"} & {*step.args})
        or (step.program in ("grep", "rg", "egrep", "pgrep", "lsof", "fuser") and not {"-v", "-L"} & {*step.args})
        for step in view.steps
        if not step.substituted
    ) and bool(view.call.output.strip())


def _shows(line: str, topic: str) -> bool:
    stem = topic.lower().removesuffix("s")
    return stem in line.lower() and not re.search(r"\b(?:0|no|none|zero|without)\b", line.lower())
