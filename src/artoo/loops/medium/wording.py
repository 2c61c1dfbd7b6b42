"""What R7 says to the person, in their language. Facts are filled in by code; nothing here claims success."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from artoo.contracts.criteria import Assurance
from artoo.contracts.solution import StoppedBy, UnmetCriterion

LAW1_MARK = "[LAW1]"


@dataclass(frozen=True, slots=True)
class Wording:
    """The sentences of one language."""

    not_completed: str
    unmet: str
    delivered: str
    tried: str
    next_moves: str
    withheld: str
    unverified: str
    unlooked: str
    open: str
    failing: str
    unformed: str
    own_values: str
    stopped: dict[StoppedBy, str]
    moves: dict[StoppedBy, tuple[str, ...]]


ENGLISH = Wording(
    not_completed="The task could not be completed: {reason}.",
    unmet="Not met: {criterion} ({reason})",
    delivered="What was reached:",
    tried="Tried: {tried}",
    next_moves="You could:",
    withheld="Not done, because it was not confirmed: {act}",
    unverified="Unverified: nothing has confirmed this answer.",
    unlooked="Unverified: this is what the model knows; nothing was looked up.",
    open="Not verified: {criterion}",
    failing="Failed last: {command}",
    unformed="Not in the form that was asked for: {reason}",
    own_values="Put in by the model, not found in the answer: {fields}",
    stopped={
        StoppedBy.COST: "its budget of rounds and time is nearly spent",
        StoppedBy.DIVERGENCE: "the results were getting worse",
        StoppedBy.REPLANS: "no way that was tried led to the goal",
        StoppedBy.MISSING_INPUT: "something that it needs does not exist",
        StoppedBy.TIME: "the time budget is spent",
        StoppedBy.CALLS: "the budget of model calls is spent",
        StoppedBy.TOKENS: "the budget of tokens is spent",
        StoppedBy.MONEY: "the budget of money is spent",
        StoppedBy.NO_MODEL: "no language model could be used",
        StoppedBy.INTERRUPTED: "it was interrupted",
        StoppedBy.REFUSED_BY_USER: "a step that it needs was not allowed",
        StoppedBy.INTERNAL: "a part of artoo failed",
    },
    moves={
        StoppedBy.COST: ("say more precisely what is wanted, or where it is",),
        StoppedBy.DIVERGENCE: ("say more precisely what is wanted, or where it is",),
        StoppedBy.REPLANS: ("say more precisely what is wanted, or where it is",),
        StoppedBy.MISSING_INPUT: ("check the name, or say where it is",),
        StoppedBy.TIME: ("give it more time (--budget seconds=…)",),
        StoppedBy.CALLS: ("allow more model calls (--budget calls=…)",),
        StoppedBy.TOKENS: ("allow more tokens (--budget tokens=…)",),
        StoppedBy.MONEY: ("allow it to cost more (--budget money=…)",),
        StoppedBy.NO_MODEL: ("check the model settings with `artoo doctor`",),
        StoppedBy.INTERNAL: ("look at the whole record with `artoo log show`",),
    },
)

CHINESE = Wording(
    not_completed="任务未能完成：{reason}。",
    unmet="未满足：{criterion}（{reason}）",
    delivered="已得到的结果：",
    tried="尝试过：{tried}",
    next_moves="您可以：",
    withheld="未执行（未获确认）：{act}",
    unverified="未经验证：没有任何东西证实这个答案。",
    unlooked="未经验证：这是模型自己的知识，没有查证。",
    open="未验证：{criterion}",
    failing="最后失败的命令：{command}",
    unformed="未能转换成所要求的格式：{reason}",
    own_values="由模型填入，答案中没有：{fields}",
    stopped={
        StoppedBy.COST: "轮次和时间预算即将用尽",
        StoppedBy.DIVERGENCE: "结果越来越差",
        StoppedBy.REPLANS: "尝试过的方法都没有达到目标",
        StoppedBy.MISSING_INPUT: "所需的东西不存在",
        StoppedBy.TIME: "时间预算已用尽",
        StoppedBy.CALLS: "模型调用预算已用尽",
        StoppedBy.TOKENS: "token 预算已用尽",
        StoppedBy.MONEY: "费用预算已用尽",
        StoppedBy.NO_MODEL: "没有可用的语言模型",
        StoppedBy.INTERRUPTED: "任务被中断",
        StoppedBy.REFUSED_BY_USER: "所需的一步未被允许",
        StoppedBy.INTERNAL: "artoo 的某个部分出错",
    },
    moves={
        StoppedBy.COST: ("更具体地说明想要什么，或它在哪里",),
        StoppedBy.DIVERGENCE: ("更具体地说明想要什么，或它在哪里",),
        StoppedBy.REPLANS: ("更具体地说明想要什么，或它在哪里",),
        StoppedBy.MISSING_INPUT: ("检查名称，或说明它在哪里",),
        StoppedBy.TIME: ("给它更多时间（--budget seconds=…）",),
        StoppedBy.CALLS: ("允许更多模型调用（--budget calls=…）",),
        StoppedBy.TOKENS: ("允许使用更多 token（--budget tokens=…）",),
        StoppedBy.MONEY: ("允许更高的费用（--budget money=…）",),
        StoppedBy.NO_MODEL: ("用 `artoo doctor` 检查模型设置",),
        StoppedBy.INTERNAL: ("用 `artoo log show` 查看完整记录",),
    },
)


def wording(language: str) -> Wording:
    """The sentences for a BCP 47 primary tag; English when there are none."""
    return CHINESE if language == "zh" else ENGLISH


def accepted(words: Wording, output: str, unmet: Sequence[UnmetCriterion], withheld: Sequence[str]) -> str:
    """The summary of an accept or a success: the output, and every criterion that it does not meet."""
    lines = [output, *_unmet(words, unmet), *_withheld(words, withheld)]
    return _marked("\n".join(filter(None, lines)), withheld)


def facts(
    words: Wording, assurance: Assurance, opened: Sequence[str], failing: Sequence[str], *, looked: bool
) -> tuple[str, ...]:
    """What the person is to know beside the answer, a line each. `looked`: whether any tool was used."""
    lines: list[str] = []
    if assurance is Assurance.UNVERIFIED:
        lines.append(words.unverified if looked else words.unlooked)
    lines += [words.open.format(criterion=criterion) for criterion in opened]
    lines += [words.failing.format(command=command) for command in failing]
    return tuple(lines)


def abandoned(
    words: Wording,
    stopped_by: StoppedBy,
    detail: str,
    output: str,
    unmet: Sequence[UnmetCriterion],
    tried: Sequence[str],
    moves: Sequence[str],
    withheld: Sequence[str],
) -> str:
    """The summary of an abandoned task: why, what was reached, what is missing, what was tried, what now."""
    reason = words.stopped[stopped_by] + (f" ({detail})" if detail not in ("", stopped_by.value) else "")
    lines = [words.not_completed.format(reason=reason)]
    if output:
        lines += [words.delivered, output]
    lines += [*_unmet(words, unmet), *_withheld(words, withheld)]
    if tried:
        lines.append(words.tried.format(tried="; ".join(tried[:5])))
    if moves:
        lines += [words.next_moves, *(f"- {move}" for move in moves)]
    return _marked("\n".join(lines), withheld)


def _unmet(words: Wording, unmet: Sequence[UnmetCriterion]) -> list[str]:
    return [words.unmet.format(criterion=each.criterion, reason=each.reason or "?") for each in unmet]


def _withheld(words: Wording, withheld: Sequence[str]) -> list[str]:
    return [words.withheld.format(act=act) for act in withheld]


def _marked(text: str, withheld: Sequence[str]) -> str:
    return f"{LAW1_MARK} {text}" if withheld else text
