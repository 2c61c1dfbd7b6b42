"""Rules for things without a file's shape: services, branches, containers, hosts by short name, environments."""

from __future__ import annotations

import re
from collections.abc import Iterator

from artoo.loops.fast.evidence.case import Case, contradiction
from artoo.loops.fast.evidence.claims import Clause, Stance
from artoo.loops.fast.evidence.effects import Effect
from artoo.loops.fast.evidence.finding import Finding
from artoo.loops.fast.evidence.names import contains_word, without_names
from artoo.loops.fast.evidence.words import words

_ENVIRONMENTS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("production", re.compile(r"(?<![a-z])(?:production|prod)(?![a-z])|生产|线上", re.I)),
    ("staging", re.compile(r"(?<![a-z])(?:staging|stage|preprod)(?![a-z])|预发|预生产", re.I)),
    ("development", re.compile(r"(?<![a-z])(?:development|dev)(?![a-z])|开发环境", re.I)),
    (
        "testing",
        re.compile(
            r"(?<![a-z])(?:testing|qa|uat) ?(?:environment|server|system|db|database|cluster)|测试环境", re.I
        ),
    ),
)
_KINDS = (
    "branch|container|service|package|process|daemon|host|server|table|database|user"
    "|account|image|bucket|volume|module|cluster"
    "|namespace|job|pod|device|interface|channel|playlist|calendar|printer"
)
_KINDS_ZH = "分支|容器|服务|软件包|主机|服务器|数据库|用户|镜像"
_NAMED = re.compile(
    rf"\b(?:{_KINDS}) (?:named |called )?(?P<after>[a-z][\w.+-]*)(?<!ed)(?=\s+(?:was|were"
    r"|is|are|has|have|had|now|on|in|at|with|from|to|and)\b|\s*[.,;:)!]?\s*$|\s*[,;])"
    r"|\b(?:used|owned|written|taken|held|blocked|created|locked|started|occupied|authored"
    rf"|maintained) by (?:the )?(?P<agent>[A-Za-z][\w.+-]*)|(?:{_KINDS_ZH})\s?(?P<han>[A-Za-z][\w.+-]*)"
    rf"|(?P<before>[A-Za-z][\w.+-]*)\s?(?:{_KINDS_ZH})",
    re.I,
)
_MANAGED = frozenset({Effect.START, Effect.STOP, Effect.INSTALL, Effect.UNINSTALL})
_SUBJECT = re.compile(
    rf"^\W*(?:and )?(?:the |my |your )?(?P<thing>[A-Za-z][\w.+-]*)(?: (?:{_KINDS}|app|application"
    r"|program|library))? (?:was|were|is now|are now|has been|have been|is|now)\b",
    re.I,
)
_OBJECT = re.compile(
    r"\b(?:started|restarted|stopped|launched|enabled|disabled|installed|upgraded|uninstalled"
    rf"|reloaded|killed|terminated|removed)(?: up)? (?:the |my |your )?(?:(?:{_KINDS})"
    r" )?(?P<thing>[A-Za-z][\w.+-]*)"
    r"|(?:启动|重启|停止|安装|升级|卸载|启用|关闭|禁用)(?:了|好)?\s*(?P<han>[A-Za-z][\w.+-]*)",
    re.I,
)
_BRANCH = re.compile(
    r"\b(?:to|into|onto|from|on|with) (?:the )?(?:branch |remote )?(?P<thing>[A-Za-z][\w./-]*)"
    r"|到\s?(?P<han>[A-Za-z][\w./-]*)",
    re.I,
)
_CODED = re.compile(
    r"(?<![\w./-])[A-Za-z]{1,12}[-_]?\d{1,4}(?![\w.]|-\d)|(?<![\w./-])[a-z]+(?:_[a-z0-9]+)+(?![\w.])"
)
_FAMILIAR = re.compile(
    r"(?:utf|mp|x|python|base|sha|md|ipv?|http|h|tls|ssl|usb|sqlite|css|html|es|win|k"
    r"|s|q|v|ec|oauth|log|int|float|iso|step|file|line|test|page|part|day|week|level|top"
    r"|version|covid|gpt|qwen|llama)[-_]?\d+$",
    re.I,
)
_ORDINARY = frozenset(
    words(
        """the a an is are was were be been has have had it its this that these those there which who what
        and or but not no all both some any named called new old own same other main-menu in on of at by
        for from to with as into onto over out up down now then also only just service services server
        servers container containers process processes package packages program programs application
        applications app apps machine computer system everything nothing something dependencies
        requirements build builds project projects tests test file files directory folder name names
        list version number size status state file-name successfully already currently running stopped
        started installed enabled disabled available required needed found named origin remote
        repository repo disk desktop branch branches commit commits changes change code i we you they he
        she update updates user users database table tables job jobs script scripts will would can took
        ran went got gave began ended hung died could should must may might does did do using via after
        before while when where because since so if than very completely listening active inactive
        up-to-date itself one two three four five six seven eight nine ten latest current local default
        virtual environment them him her me us connection connections use accepts accepted answers
        returns returned contains exists consumes takes daemon host hosts volume image images account
        accounts"""
    )
)


def entities(clause: Clause, case: Case) -> Iterator[Finding]:
    """Findings against the things that a clause names in plain words."""
    if clause.stance in (Stance.TALK, Stance.FAILED, Stance.ABSENT):
        return
    yield from _listed(clause, case)
    evidence = f"{case.asked}\n{case.said}".lower()
    yield from _environment(clause, case, evidence)
    for thing in dict.fromkeys(_things(clause)):
        if not _known(thing.lower(), evidence):
            yield contradiction(
                "wrong_target", f"“{clause.text}”, but {thing} is nowhere in the evidence", case.views
            )
            return


def _listed(clause: Clause, case: Case) -> Iterator[Finding]:
    """`alpha, beta and delta`: a list of which most is in the evidence must be there wholly."""
    parts = [part.strip(" .`'\"") for part in re.split(r",|，|、|:|\band\b|和", clause.text)]
    items = [part for part in parts[1:] if re.fullmatch(r"[a-z][\w-]{2,}", part)]
    said = case.said.lower()
    missing = [item for item in items if not contains_word(said, item)]
    if missing and len(missing) * 2 < len(items) + 1 and len(items) > 1:
        yield contradiction(
            "unknown_name", f"“{clause.text}”, but {missing[0]} is nowhere in the evidence", case.views
        )


def _environment(clause: Clause, case: Case, evidence: str) -> Iterator[Finding]:
    claimed = {name for name, pattern in _ENVIRONMENTS if pattern.search(clause.text)}
    if not claimed:
        return
    known = {name for name, pattern in _ENVIRONMENTS if pattern.search(evidence)}
    if known and not claimed & known:
        yield contradiction(
            "wrong_target", f"“{clause.text}”, but the evidence is about {', '.join(sorted(known))}", case.views
        )


def _things(clause: Clause) -> Iterator[str]:
    """Identifiers of the clause that must occur in the evidence, whatever the request said."""
    text = without_names(clause.text)
    found = [match for pattern in (_NAMED,) for match in pattern.finditer(text)]
    if any(effects <= _MANAGED for effects in clause.effects):
        found += [match for pattern in (_SUBJECT, _OBJECT) for match in pattern.finditer(text)]
    if any(
        effects <= {Effect.PUSH, Effect.MERGE, Effect.CREATE, Effect.EDIT} and effects & {Effect.PUSH, Effect.MERGE}
        for effects in clause.effects
    ):
        found += list(_BRANCH.finditer(text))
    for match in found:
        thing = next(part for part in match.groups() if part) if any(match.groups()) else ""
        if (
            len(thing) > 1
            and thing.lower().rstrip(".") not in _ORDINARY
            and not thing.lower().endswith(("ly", "ing"))
        ):
            yield thing.rstrip(".")
    for match in _CODED.finditer(text):
        if not _FAMILIAR.match(match[0]):
            yield match[0]


def _known(thing: str, evidence: str) -> bool:
    """Whether the evidence speaks of it, also under a longer or shorter name (apache2, postgres)."""
    if contains_word(evidence, thing):
        return True
    if any(char.isdigit() or char in "._-" for char in thing):
        return False
    return len(thing) > 3 and (
        thing in evidence or (len(thing) > 5 and thing[:6] in evidence) or thing[:4] in evidence.split()
    )
