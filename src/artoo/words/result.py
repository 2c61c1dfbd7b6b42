"""What artoo says about a result, in English and in Chinese: fields in, sentences out.

Criteria, outputs and a model's or a tool's own words stand as they are. A third language is one more `ResultWords`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from artoo.contracts.criteria import (
    AGREES_WITH_EVIDENCE,
    TWO_WAYS_AGREE,
    CheckAmended,
    in_a_line,
)
from artoo.contracts.findings import (
    ByJudge,
    ChangedByTwo,
    FailedLast,
    Found,
    LeftOpen,
    LeftRunning,
    NotAgreed,
    NotSeen,
    NotThere,
    OwnValues,
    PartChecked,
    Reason,
    Remark,
    ResultFact,
    StoppedAtEnd,
    Unchanged,
    Unconfirmed,
    Unformed,
    Unheard,
    Unjudged,
    Unread,
)
from artoo.contracts.shortened import CUT, shortened
from artoo.contracts.solution import Directive, FinalResult, StoppedBy, UnmetCriterion

_MOST_TRIED = 5
_OF_A_CHECK = 400
"""Characters of each thing that is told of a check that was replaced; the log has all."""


class HowTo(NamedTuple):
    """How a person says something to artoo where a result is shown, if there is one way: a terminal has options and
    commands for it. `budget` and `setting` have room for a name; `answer`: to go on with the conversation.
    """

    budget: str = ""
    setting: str = "{}"
    answer: str = ""


_NAMES = ("seconds", "calls", "tokens", "money")
"""The budgets of a task, as every surface names them."""


@dataclass(frozen=True, slots=True)
class ResultWords:
    """The sentences of one language. `findings` leaves out what is said in English as it stands."""

    not_completed: str
    asks: str
    cannot: str
    cannot_because: str
    detailed: str
    unmet: str
    reached: str
    tried: str
    next_moves: str
    withheld: str
    unverified: str
    partly: str
    unlooked: str
    from_files: str
    from_image: str
    open: str
    unjudged: str
    unread: str
    unread_output: str
    part_checked: str
    amended: str
    by_judge: str
    by_same_judge: str
    unchanged: str
    absent: str
    empty: str
    failing: str
    said_no: str
    unformed: str
    own_values: str
    not_agreed: str
    unheard: str
    stopped_at_end: str
    left_running: str
    not_seen: str
    changed_by_two: str
    out_of_time: str
    more_time: str
    budget: str
    by: str
    stopped: Mapping[StoppedBy, str]
    moves: Mapping[StoppedBy, str]
    criteria: Mapping[str, str]
    findings: Mapping[Found, str]

    def criterion(self, text: str) -> str:
        """A criterion; those that code implies have words here."""
        return self.criteria.get(text, text)

    def reason(self, unmet: UnmetCriterion) -> str:
        """Why a criterion is not met."""
        found = unmet.found
        if found is None or found.found not in self.findings:
            return unmet.reason
        return self.found(found)

    def found(self, found: Reason) -> str:
        """What code found."""
        form = self.findings.get(found.found)
        return found.text if form is None else form.format(subject=found.subject, said=found.said).rstrip("：: ")

    def failed(self, result: FinalResult) -> tuple[UnmetCriterion, ...]:
        """What is unmet though work on it was possible; of the rest it is said that it cannot be done."""
        return tuple(each for each in result.unmet if not each.impossible)

    def why_unmet(self, unmet: UnmetCriterion, output: str) -> str:
        """The reason, unless the output has said it: why a task cannot be done is its answer."""
        reason = self.reason(unmet)
        return "" if output.strip().startswith(reason.removesuffix(CUT)) else reason

    def _missed(self, unmet: UnmetCriterion, output: str) -> str:
        criterion, reason = self.criterion(unmet.criterion), self.why_unmet(unmet, output)
        return self.detailed.format(reason=criterion, detail=reason) if reason else criterion

    def fact(self, fact: ResultFact) -> str:
        """One thing that code knows, as a line."""
        match fact:
            case Unconfirmed(confirmed=(_, *_) as confirmed):
                return self.partly.format(criteria="; ".join(map(self.criterion, confirmed)).rstrip(".\u3002"))
            case Unconfirmed(looked=True):
                return self.unverified
            case Unconfirmed(images=False, files=(_, *_) as files):
                return self.from_files.format(paths=", ".join(files))
            case Unconfirmed(images=images):
                return self.from_image if images else self.unlooked
            case LeftOpen(criterion=criterion, found=found):
                text = self.criterion(criterion)
                detailed = self.detailed.format(reason=text, detail=self.found(found)) if found else text
                return self.open.format(criterion=detailed)
            case Unjudged(said=said):
                return self.unjudged.format(reason=said)
            case Unread(checks=checks, put_out=put_out):
                form = self.unread_output if put_out else self.unread
                return form.format(checks="; ".join(map(self.criterion, checks)).rstrip(".\u3002"))
            case PartChecked(criteria=checks):
                return self.part_checked.format(checks="; ".join(map(self.criterion, checks)).rstrip(".\u3002"))
            case CheckAmended(criterion=criterion, before=before, after=after, reason=reason):
                known = {"criterion": criterion.rstrip(".\u3002"), "reason": shortened(reason, _OF_A_CHECK)}
                was, now = (shortened(in_a_line(each), _OF_A_CHECK) for each in (before, after))
                return self.amended.format(**known, before=was, after=now)
            case ByJudge(same=same):
                return self.by_same_judge if same else self.by_judge
            case Unchanged():
                return self.unchanged
            case NotThere(paths=paths, empty=empty):
                return (self.empty if empty else self.absent).format(paths=", ".join(paths))
            case FailedLast(command=command, tool=tool, said=said, said_no=said_no):
                call = f"{tool}: {command}" if tool else command
                form = self.said_no if said_no else self.failing
                return form.format(call=self.detailed.format(reason=call, detail=said) if said else call)
            case Unformed(problem=problem):
                return self.unformed.format(reason=problem)
            case OwnValues(places=places):
                return self.own_values.format(fields=", ".join(places))
            case NotAgreed(what=what):
                return self.not_agreed.format(what=", ".join(what))
            case Unheard(texts=texts):
                return self.unheard.format(texts="; ".join(texts))
            case StoppedAtEnd(commands=commands):
                return self.stopped_at_end.format(commands=", ".join(f"`{each}`" for each in commands))
            case LeftRunning(commands=commands):
                return self.left_running.format(commands=", ".join(commands))
            case NotSeen(notes=notes):
                return self.not_seen.format(notes="; ".join(notes))
            case ChangedByTwo(paths=paths, parts=parts):
                return self.changed_by_two.format(paths=", ".join(paths), parts="; ".join(parts).rstrip(".\u3002"))
            case Remark(text=text):
                return text

    def why_stopped(self, result: FinalResult) -> str:
        """Why a task was abandoned; empty of any other."""
        if result.directive is not Directive.ABANDON:
            return ""
        why = result.stopped_by or StoppedBy.INTERNAL
        if why is StoppedBy.QUESTION:
            return self.asks
        if why is StoppedBy.MISSING_INPUT:
            return self.cannot_because.format(reason=result.detail) if result.detail else self.cannot
        late = why in (StoppedBy.REPLANS, StoppedBy.DIVERGENCE) and _is_out_of_time(result)
        reason = self.out_of_time if late else self.stopped[why]
        if result.detail not in ("", why.value):
            reason = self.detailed.format(reason=reason, detail=result.detail)
        return self.not_completed.format(reason=reason)

    def could(self, result: FinalResult, how: HowTo | None = None) -> tuple[str, ...]:
        """What the person can do: a model's suggestions, else what the ending itself suggests. Where nothing could
        even be planned, other words of theirs would not help; where a subtask's time ran out, more of it may.
        Of what was delivered unjudged: what would have left room for a judge.
        """
        why, how = result.stopped_by, how or HowTo()
        if _is_out_of_time(result):
            more = self.more_time.format(setting=how.setting.format("control.time_budget_ms"))
            return (more, *result.next_moves)
        if why is None:
            facts = (fact for fact in result.facts if isinstance(fact, Unjudged) and fact.budget)
            return (*result.next_moves, *(self._move(StoppedBy(fact.budget), how) for fact in facts))
        if result.next_moves or why not in self.moves:
            return result.next_moves
        in_vain = why in (StoppedBy.COST, StoppedBy.DIVERGENCE, StoppedBy.REPLANS) and not result.unmet
        return () if in_vain else (self._move(why, how),)

    def _move(self, why: StoppedBy, how: HowTo) -> str:
        budgets = {name: (how.budget or self.budget).format(name) for name in _NAMES}
        return self.moves[why].format(answer=self.by.format(how.answer) if how.answer else "", **budgets)

    def plain(self, result: FinalResult, how: HowTo | None = None, *, told: bool = True) -> str:
        """The whole answer as text: what was reached, what is missing, why it stopped, what comes next. `told`: to
        a person. A model that reads it later has only a model's suggestions.
        """
        why, output = self.why_stopped(result), result.output.strip()
        lines = [why, self.reached if why and result.done else "", output]
        lines += (self.unmet.format(criterion=self._missed(each, output)) for each in self.failed(result))
        lines += (self.withheld.format(act=act) for act in result.withheld)
        if result.tried:
            lines.append(self.tried.format(tried="; ".join(result.tried[:_MOST_TRIED])))
        moves = self.could(result, how) if told else result.next_moves
        lines += (self.next_moves, *(f"- {move}" for move in moves)) if moves else ()
        return "\n".join(filter(None, lines))


def _is_out_of_time(result: FinalResult) -> bool:
    """Whether a subtask of the last round had no time left: no other words would have helped there."""
    found = (unmet.found for unmet in result.unmet)
    return any(reason is not None and reason.found is Found.OUT_OF_TIME for reason in found)


_SAY_MORE = "say more precisely what is wanted, or where it is"
_SAY_MORE_ZH = "更具体地说明想要什么，或它在哪里"

ENGLISH: Final = ResultWords(
    not_completed="The task could not be completed: {reason}.",
    asks="Before it can be done, this has to be known:",
    cannot="It cannot be done here, as far as was seen.",
    cannot_because="A part of it cannot be done here, as far as was seen: {reason}",
    detailed="{reason} ({detail})",
    unmet="Not met: {criterion}",
    reached="What was reached:",
    tried="Tried: {tried}",
    next_moves="You could:",
    withheld="Not done, because it was not confirmed: {act}",
    unverified="Unverified: nothing has confirmed this answer.",
    partly="Verified in part: {criteria}.",
    unlooked="Unverified: no tool showed this, and no file was changed; it is what the model knows or was shown.",
    from_files="Unverified: no tool was needed, and no file was changed; the model was shown {paths} whole.",
    from_image="Unverified: no tool showed this, and no file was changed; it is what the model knows or was shown, "
    "images too.",
    open="Not verified: {criterion}",
    unread="Checked: {checks}. The answer's own words were checked by nobody.",
    unread_output="Checked: {checks}. What the program put out was checked no further.",
    part_checked="Checked of it: {checks}.",
    amended="Its check was replaced after it failed: {criterion} (was: {before}; is: {after}; reason: {reason})",
    unjudged="Not judged: {reason}",
    by_judge="Judged by a model that read the record of the calls.",
    by_same_judge="Judged by a model that read the record of the calls: the same model that did the work.",
    unchanged="No file was changed.",
    absent="Not there: {paths}",
    empty="Empty: {paths}",
    failing="Failed last: {call}",
    said_no="Ended with exit code 1: {call}",
    unformed="Not in the form that was asked for: {reason}",
    own_values="Put in by the model, not found in the answer: {fields}",
    not_agreed="Not used, because it was not agreed to: {what}",
    unheard="You wrote this, and the task had ended before it was read: {texts}",
    stopped_at_end="Stopped at the end: {commands}",
    left_running="Left running (`artoo ps`, `artoo stop ID`): {commands}",
    not_seen="The commands did not see all of your files: {notes}",
    changed_by_two="Changed by parts that ran at the same time: {paths} ({parts})",
    out_of_time="the time for a subtask ran out before there was a result",
    more_time="give the task more time ({setting})",
    budget="budget: {}",
    by=": {}",
    stopped={
        StoppedBy.COST: "its budget of rounds and time is nearly spent",
        StoppedBy.DIVERGENCE: "the results were getting worse",
        StoppedBy.REPLANS: "no way that was tried led to the goal",
        StoppedBy.TIME: "the time budget is spent",
        StoppedBy.CALLS: "the budget of model calls is spent",
        StoppedBy.TOKENS: "the budget of tokens is spent",
        StoppedBy.MONEY: "the budget of money is spent",
        StoppedBy.NO_MODEL: "no language model could be used",
        StoppedBy.PROMPT_REFUSED: "the model's server refused what it was asked",
        StoppedBy.INTERRUPTED: "it was interrupted",
        StoppedBy.REFUSED_BY_USER: "a step that it needs was not allowed",
        StoppedBy.INTERNAL: "a part of artoo failed",
    },
    moves={
        StoppedBy.COST: "give it more time ({seconds}), or say more precisely what is wanted",
        StoppedBy.DIVERGENCE: _SAY_MORE,
        StoppedBy.REPLANS: _SAY_MORE,
        StoppedBy.MISSING_INPUT: "give it what it lacks, or ask for something else",
        StoppedBy.QUESTION: "answer it, in the same conversation{answer}",
        StoppedBy.TIME: "give it more time ({seconds})",
        StoppedBy.CALLS: "allow more model calls ({calls})",
        StoppedBy.TOKENS: "allow more tokens ({tokens})",
        StoppedBy.MONEY: "allow it to cost more ({money})",
        StoppedBy.NO_MODEL: "check the model settings with `artoo doctor`",
        StoppedBy.PROMPT_REFUSED: "ask for less at once, or use another model (`artoo doctor`)",
        StoppedBy.INTERNAL: "look at the whole record with `artoo log show`",
    },
    criteria={},
    findings={},
)

CHINESE: Final = ResultWords(
    not_completed="任务未能完成：{reason}。",
    asks="在动手之前，需要先知道：",
    cannot="据目前所见，这在此处无法完成。",
    cannot_because="据目前所见，其中一部分在此处无法完成：{reason}",
    detailed="{reason}（{detail}）",
    unmet="未满足：{criterion}",
    reached="已得到的结果：",
    tried="尝试过：{tried}",
    next_moves="您可以：",
    withheld="未执行（未获确认）：{act}",
    unverified="未经验证：没有任何东西证实这个答案。",
    partly="部分得到验证：{criteria}。",
    unlooked="未经验证：没有任何工具显示过这个回答，也没有更改任何文件；它是模型自己知道的或给它看过的。",
    from_files="未经验证：无需工具，也没有更改任何文件；给模型看过以下文件的全部内容：{paths}。",
    from_image="未经验证：没有任何工具显示过这个回答，也没有更改任何文件；它是模型从图片中看到的、自己知道的或给它看过的。",
    open="未验证：{criterion}",
    unread="已核验：{checks}。回答本身的文字未经核验。",
    unread_output="已核验：{checks}。程序的输出未作其他核验。",
    part_checked="其中已核验：{checks}。",
    amended="检查未通过后被替换：{criterion}（原为：{before}；现为：{after}；理由：{reason}）",
    unjudged="没有判定：{reason}",
    by_judge="由一个读过调用记录的模型判定。",
    by_same_judge="由一个读过调用记录的模型判定，它就是完成这项工作的模型。",
    unchanged="没有更改任何文件。",
    absent="不存在：{paths}",
    empty="空文件：{paths}",
    failing="最后失败：{call}",
    said_no="以退出码 1 结束：{call}",
    unformed="未能转换成所要求的格式：{reason}",
    own_values="由模型填入，答案中没有：{fields}",
    not_agreed="未获同意，没有使用：{what}",
    unheard="您写了以下内容，但任务在读到之前已经结束：{texts}",
    stopped_at_end="结束时已停止：{commands}",
    left_running="仍在运行（`artoo ps`、`artoo stop ID`）：{commands}",
    not_seen="命令没有看到您的全部文件：{notes}",
    changed_by_two="被同时运行的部分更改：{paths}（{parts}）",
    out_of_time="子任务的时间用尽，还没有得到结果",
    more_time="给任务更多时间（{setting}）",
    budget="预算：{}",
    by="：{}",
    stopped={
        StoppedBy.COST: "轮次和时间预算即将用尽",
        StoppedBy.DIVERGENCE: "结果越来越差",
        StoppedBy.REPLANS: "尝试过的方法都没有达到目标",
        StoppedBy.TIME: "时间预算已用尽",
        StoppedBy.CALLS: "模型调用预算已用尽",
        StoppedBy.TOKENS: "token 预算已用尽",
        StoppedBy.MONEY: "费用预算已用尽",
        StoppedBy.NO_MODEL: "没有可用的语言模型",
        StoppedBy.PROMPT_REFUSED: "模型服务器拒绝了这个请求",
        StoppedBy.INTERRUPTED: "任务被中断",
        StoppedBy.REFUSED_BY_USER: "所需的一步未被允许",
        StoppedBy.INTERNAL: "artoo 的某个部分出错",
    },
    moves={
        StoppedBy.COST: "给它更多时间（{seconds}），或更具体地说明想要什么",
        StoppedBy.DIVERGENCE: _SAY_MORE_ZH,
        StoppedBy.REPLANS: _SAY_MORE_ZH,
        StoppedBy.MISSING_INPUT: "补上它所缺少的，或提出别的请求",
        StoppedBy.QUESTION: "在同一对话中回答{answer}",
        StoppedBy.TIME: "给它更多时间（{seconds}）",
        StoppedBy.CALLS: "允许更多模型调用（{calls}）",
        StoppedBy.TOKENS: "允许使用更多 token（{tokens}）",
        StoppedBy.MONEY: "允许更高的费用（{money}）",
        StoppedBy.NO_MODEL: "用 `artoo doctor` 检查模型设置",
        StoppedBy.PROMPT_REFUSED: "一次少要求一些，或换一个模型（`artoo doctor`）",
        StoppedBy.INTERNAL: "用 `artoo log show` 查看完整记录",
    },
    criteria={
        AGREES_WITH_EVIDENCE: "结果与工具实际所做的一致",
        TWO_WAYS_AGREE: "两种独立方法的结果一致",
    },
    findings={
        Found.NOT_CALLED: "没有调用过 {subject}",
        Found.CALL_ENDED: "{subject}：{said}",
        Found.WITHHELD: "{subject} 未获确认，没有执行：{said}",
        Found.CUT_SHORT: "{subject} 被中途终止（{said}）",
        Found.STILL_RUNNING: "{subject} 仍在运行：{said}",
        Found.DID_NOT_RUN: "{subject} 没有运行：{said}",
        Found.FAILED: "{subject} 失败：{said}",
        Found.SAYS_ONLY: "{subject} 的退出码掩盖了它的输出：{said}",
        Found.NO_CALL: "答案引用了第 {subject} 次调用，而总共只有 {said} 次",
        Found.EMPTY: "答案是空的",
        Found.NO_RESULT: "没有得到结果：{said}",
        Found.OUT_OF_TIME: "子任务超时（{said}）",
        Found.NOWHERE: "在任何输出、更改或请求中都找不到：{said}",
        Found.MISCALCULATED: "答案中的算式结果有误，应为：{said}",
        Found.NOT_LOOKED_UP: "它谈到这里的文件，却没有任何调用查看过它们：{said}",
        Found.OWN_WORDS: "没有任何工具显示过它，是模型自己知道的或给它看过的",
        Found.WAYS_DIFFER: "其他方法得到：{said}",
        Found.BAD_PATTERN: "正则表达式 {subject} 无法使用：{said}",
        Found.NO_MATCH: "输出中没有匹配 {subject} 的内容：{said}",
        Found.NO_MATCH_IN: "{subject} 中没有匹配的内容：{said}",
        Found.NOT_JSON: "输出不是单个 JSON 值：{said}",
        Found.BAD_SCHEMA: "JSON schema 本身无法使用：{said}",
        Found.MISFIT: "JSON 在 {subject} 处不符合 schema：{said}",
        Found.MISSING: "{subject} 不存在",
        Found.UNREADABLE: "{subject} 无法查看：{said}",
        Found.IS_DIRECTORY: "{subject} 是目录，不是文本文件",
        Found.NO_TEXT: "{subject} 是二进制文件或过大，无法搜索（{said} 字节）",
        Found.COMMAND_FAILED: "`{subject}` 的退出码是 {said}",
        Found.NO_VERDICT: "`{subject}` 没有给出结论：{said}",
        Found.HELD_BEFORE: "其检查在工作之前就已通过：{subject}",
        Found.UNFINISHED: "未判定：有一个子任务没有完成",
        Found.NO_BUDGET: "没有判定：{said}",
        Found.CONFLICT: "{subject} 保留的是另一个同时运行的子任务的版本：{said}",
    },
)


def result_words(language: str) -> ResultWords:
    """The sentences for a BCP 47 tag; English where there is no translation."""
    return CHINESE if language.lower().startswith("zh") else ENGLISH
