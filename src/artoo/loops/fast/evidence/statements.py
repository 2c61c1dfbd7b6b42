"""Rules for statements of fact: somebody must have looked, at the right thing, and seen that."""

from __future__ import annotations

import re
from collections.abc import Iterator

from artoo.loops.fast.evidence.calls import GOOD, CallView, Standing
from artoo.loops.fast.evidence.case import Case, contradiction
from artoo.loops.fast.evidence.claims import Clause, Stance
from artoo.loops.fast.evidence.figures import read_lines
from artoo.loops.fast.evidence.finding import Finding
from artoo.loops.fast.evidence.names import contains_word, is_file_like, mentions
from artoo.loops.fast.evidence.words import words

_FOUND = re.compile(
    r"\b(?:found|located|there (?:is|are)|exists?|matches|matched|is in)\b|找到|存在|发现|位于", re.I
)
_OPPOSITES: tuple[tuple[str, str], ...] = (
    (
        r"running|active|up(?! to)|online|alive|healthy|started|运行|正常|在线|活跃|健康",
        r"inactive|dead|stopped|not running|down|offline|unhealthy|exited|crashed|failed|disabled"
        r"|停止|离线|未运行|not active|isn't running|not loaded",
    ),
    (
        r"stopped|inactive|down|offline|not running|停止|离线|未运行",
        r"active \(running\)|is running|running|online|up \d|运行中|在线",
    ),
    (r"enabled|启用|已开启", r"disabled|not enabled|false|off|未启用|已禁用"),
    (r"disabled|off|禁用", r"enabled|true|启用"),
    (r"reachable|可达|可以访问|能连通", r"unreachable|100% packet loss|host down|refused|timed out|不可达"),
    (r"open|listening|开放|监听", r"closed|filtered|refused|关闭"),
    (r"closed|关闭", r"\bopen\b|listening"),
    (r"clean|干净", r"modified:|untracked|changes not staged|dirty|^ ?[MADRU?]{1,2} \S"),
    (r"up[- ]to[- ]date|最新", r"behind|outdated|upgradable|update available|可升级"),
    (r"installed|已安装|安装了", r"not installed|not found|no packages? found|未安装|no such package"),
    (r"identical|the same|相同|一致|一样", r"^[<>] |differ|@@ "),
    (r"valid|有效|合法", r"invalid|not valid|parse error|无效|expired"),
    (r"connected|已连接", r"disconnected|not connected|未连接"),
    (r"match(?:es)?|相符|匹配", r"did not match|mismatch|do(?:es)? not match|FAILED|不匹配"),
    (r"exists?|存在", r"missing|not found|no such|does not exist|不存在"),
    (r"true|真", r"^\W*false\W*$"),
    (r"passed|passing|succeeded|通过|成功", r"\bFAILED\b|\b[1-9]\d* fail(?:ed|ures)|failure|失败"),
)
_SLOT = re.compile(
    r"\b(?:branch|user|username|owner|host(?:name)?|shell|version|mode|group|commit|remote"
    r"|tag|model|author|kernel|distribution|os|operating system|database|theme|level|region"
    r"|environment|license|color|colour|city|country|name|status|state|type|email|address"
    r"|encoding|format|language|default|port|scheduler|maintainer|manager|leader|winner"
    r"|department)s?\b(?: (?:of|for|in|on) (?:[\w'`./-]+ ?){1,4})?\s*(?:is|are|was|=|:"
    r"|为|是)\s*(?:set to |called |named |currently |now |the |an? |on |at )*"
    r"[`'\"“「]?(?P<value>[A-Za-z][\w.@:/+-]*)"
    r"|(?:分支|用户|所有者|主机名?|版本|模式|用户组|作者|内核|环境|许可证|状态|名称|名字|部门|城市|类型|格式|语言|邮箱)(?:是|为|：|:)\s*[`'\"“「]?(?P<han>[A-Za-z][\w.@:/+-]*"
    r"|[一-鿿]{2,8})",
    re.I,
)
_PROPER = re.compile(r"\b(?:is|was) (?:called |named |in |on )?([A-Z][a-z]{2,})\b(?! [a-z])")
_PARTICIPLE = re.compile(r"(?:ed|made|done|sent|built|written|run|put|taken|given|held|kept|left|lost)$", re.I)
_UNTELLING = frozenset(
    words(
        """the a an not empty missing unknown unclear unset set same different correct wrong valid invalid
        available unavailable in at on of as shown found listed given stored required optional also only
        now currently and or good fine ok okay on off active inactive running stopped enabled disabled open
        closed clean dirty up down that there no none missing it this what which to true false yes"""
    )
)


def stated(clause: Clause, case: Case) -> Iterator[Finding]:
    """Findings against a statement of fact."""
    useful = [view for view in case.views if view.call.output.strip() or view.standing in GOOD]
    if not useful and _complained(clause, case):
        return
    if not useful:
        yield contradiction("no_evidence", f"“{clause.text}”, but {case.views[-1].failure}", case.views)
        return
    if clause.machine and all(view.invented and not view.acts for view in useful):
        yield contradiction("own_words", f"“{clause.text}”, but the calls only printed their own words", useful)
        return
    yield from _found_nothing(clause, case)
    yield from _outcome(clause, case)
    yield from opposite(clause, case)
    yield from _now(clause, case)
    yield from _slot(clause, case)
    if clause.universal and not clause.hedged and not case.admits:
        yield from _all_seen(clause, case)


def _complained(clause: Clause, case: Case) -> bool:
    """Whether an error message says what the clause says: `File exists`."""
    words = set(re.findall(r"[a-z]{4,}|[一-鿿]{2}", clause.text.lower())) - {"already", "that", "this", "there"}
    said = f"{case.said}\n{case.asked}".lower()
    return bool(words) and sum(word[:6].removesuffix("s") in said for word in words) >= max(2, 0.6 * len(words))


def _found_nothing(clause: Clause, case: Case) -> Iterator[Finding]:
    searches = [view for view in case.views if view.searches]
    others = [view for view in case.good if not view.searches]
    said_zero = any(each.value == 0 for each in clause.quantities)
    if (
        searches
        and not others
        and all(view.empty_handed for view in searches)
        and _FOUND.search(clause.text)
        and not said_zero
    ):
        yield contradiction("found_nothing", f"“{clause.text}”, but the search found nothing", searches)


def _now(clause: Clause, case: Case) -> Iterator[Finding]:
    """`is now up to date`, `is running`: what an act was to bring about or prove, and the act went wrong."""
    bad = [view for view in case.unrepaired if view.acts]
    if not bad or clause.quantities:
        return
    looked_since = any(view.index > bad[-1].index for view in case.good)
    if re.search(r"\bnow\b|现在(?:已|是)", clause.text, re.I) or (_ALIVE.search(clause.text) and not looked_since):
        yield contradiction("failed_action", f"“{clause.text}”, but {bad[-1].failure}", bad)


_ALIVE = re.compile(
    r"\b(?:is|are) (?:\w+ly |already |still |all )?(?:running|listening|serving|up|online|live|reachable"
    r"|healthy|ready|valid|working|correct|fine|ok(?:ay)?)\b|正在(?:运行|监听)|运行(?:中|正常)|(?:是|都)?有效的?$|没有?问题",
    re.I,
)
"""States that a run brings about or proves: unknown when it was ended or went wrong and nobody looked since."""


def _outcome(clause: Clause, case: Case) -> Iterator[Finding]:
    """`12 passed` beside `3 failed` tells half the truth unless the other half is told too."""
    for wanted in dict.fromkeys(clause.effects):
        able = [view for view in case.views if view.effects & wanted]
        bad = [view for view in able if view.standing not in GOOD]
        if not able:
            yield contradiction("never_done", f"“{clause.text}”, but no call did that")
        elif (
            bad
            and not case.admits
            and bad[-1] is able[-1]
            and not re.search(r"\d+ ?(?:of|/|out of) ?\d+", clause.text)
        ):
            yield contradiction("half_told", f"“{clause.text}”, but {bad[-1].failure}", bad)


def opposite(clause: Clause, case: Case) -> Iterator[Finding]:
    """The claim says `running`, the evidence `inactive`."""
    text = clause.text
    if not _ANY_WORD.search(text):
        return
    lines = [
        line
        for view in case.views
        for line in (*read_lines(view), *view.call.error_output.splitlines())
        if not _is_own_search(line)
    ]
    for word, contrary in _OPPOSITES:
        said = re.search(_word(word), text, re.I)
        if not said or re.search(
            r"\b(?:not|no|never|none|n't)\W+(?:\w+\W+){0,3}$|[不没未]$", text[: said.start()], re.I
        ):
            continue
        names = [name for name in clause.names if any(mentions(line, name) for line in lines)]
        about = [line for line in lines if not names or any(mentions(line, name) for name in names)] or lines
        against = [
            line
            for line in about
            if re.search(contrary if contrary.startswith("^") else _word(contrary), line, re.I)
        ]
        agreeing = [
            line
            for line in about
            if (line not in against or word.startswith("passed"))
            and re.search(_word(word), re.sub(contrary, " ", line, flags=re.I), re.I)
        ]
        if against and not agreeing and not re.search(_word(contrary), text, re.I):
            yield contradiction(
                "opposite", f"“{clause.text}”, but the evidence says: {against[0].strip()[:120]}", case.views
            )
            return
        looked = [view for view in case.good if view.searches or not view.acts]
        if not lines and looked and word.startswith(("running", "installed", "reachable")):
            yield contradiction("found_nothing", f"“{clause.text}”, but the search found nothing", case.views)
            return


def _word(pattern: str) -> str:
    return f"(?<![A-Za-z-])(?:{pattern})(?![A-Za-z])"


_ANY_WORD = re.compile(_word("|".join(word for word, _ in _OPPOSITES)), re.I)
"""Most clauses say none of these words: one search instead of one each, and no line is read."""


def _is_own_search(line: str) -> bool:
    """`ps | grep nginx` also finds the grep."""
    return re.search(r"\b(?:grep|pgrep)\s+(?:-\S+\s+)*\S+\s*$", line) is not None


def _slot(clause: Clause, case: Case) -> Iterator[Finding]:
    """`the branch is main`: the value must stand in the evidence, or in what was asked of it."""
    match = _SLOT.search(clause.text) or _PROPER.search(clause.text)
    value = next((part for part in match.groups() if part), "").rstrip(".:") if match else ""
    if not value or value.lower() in _UNTELLING or _PARTICIPLE.search(value) or not case.good:
        return
    everything = f"{case.said}\n{case.asked}".lower()
    if value.lower().endswith("day") and value[:3].lower() in everything:
        return
    if not contains_word(everything, value.lower()) and value.lower() not in everything.replace("-", ""):
        yield Finding(
            "unseen_value",
            f"“{clause.text}”, but “{value}” is nowhere in the evidence",
            identities=_identities(case),
        )


def _all_seen(clause: Clause, case: Case) -> Iterator[Finding]:
    """All, every, in total: the evidence must be whole."""
    bad = [
        view
        for view in case.unrepaired
        if view.standing is Standing.INCOMPLETE or (view.complaints and _also_about(view, clause))
    ]
    if bad:
        yield contradiction("not_all", f"“{clause.text}”, but {bad[-1].failure}", bad)


def _also_about(view: CallView, clause: Clause) -> bool:
    later_names = [name for name in clause.names if view.names(name)]
    return not clause.names or bool(later_names)


def named(clause: Clause, case: Case) -> Iterator[Finding]:
    """Files, hosts and quoted words of a clause must occur in what was asked for or answered."""
    if clause.stance in (Stance.FAILED, Stance.ABSENT, Stance.TALK):
        return
    for name in clause.names:
        globs = clause.stance is Stance.DONE
        if not mentions(case.said, name) and not mentions(case.asked, name, globs=globs):
            if is_file_like(name) or not _spoken_of(name, case):
                yield Finding(
                    "unknown_name",
                    f"“{clause.text}”, but {name} is nowhere in the evidence",
                    identities=_identities(case),
                )
        elif is_file_like(name) and not _answered(name, case) and clause.stance is Stance.FACT:
            yield contradiction(
                "only_errors", f"“{clause.text}”, but all that is known of {name} is an error", case.views
            )


def _spoken_of(name: str, case: Case) -> bool:
    low = name.lower()
    return low in case.intent.lower() or low in case.said.lower() or low in case.asked.lower()


def _answered(name: str, case: Case) -> bool:
    """Whether some call about this name ended well, or said something about it that is no error."""
    for view in case.views:
        if view.standing in GOOD and (view.names(name) or mentions(view.said, name)):
            return True
        complaints = set(view.complaints)
        if any(mentions(line, name) for line in view.call.output.splitlines() if line.strip() not in complaints):
            return True
        if view.names(name) and not any(mentions(line, name) for line in complaints) and view.call.output.strip():
            return True
    return False


def _identities(case: Case) -> tuple[str, ...]:
    return case.views[-1].call.identity if case.views else ()
