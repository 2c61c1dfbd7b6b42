"""Every sentence that the command line says about a task, in English and in Chinese.

Which one is chosen by the task's language: a Chinese request gets a Chinese display. Errors of usage and
configuration, and the help pages, are in English.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from artoo.words.names import DECIDERS, DIRECTIVES, ROLES


@dataclass(frozen=True, slots=True)
class Text:
    """The sentences in one language. Fields in braces are filled with `str.format`."""

    language: str
    # what is going on
    reading: str
    planning: str
    replanning: str
    dispatching: str
    waiting: str
    thinking: str
    checking: str
    merging: str
    deciding: str
    stopping: str
    stop_hint: str
    asking: str
    ask_prompt: str
    plan_prompt: str
    words_prompt: str
    plan_head: str
    held_prompt: str
    typing_hint: str
    ask_source: str
    answered: Mapping[str, str]
    answered_elsewhere: str
    round: str
    attempt: str
    runs: str
    subtasks: str
    carried: str
    refused_plan: str
    correction: str
    matched: str
    unjudged: str
    unconfirmed: str
    settling: str
    failed: str
    trouble: str
    # the result
    done_head: str
    unmet_head: str
    tried_head: str
    files_made: str
    files_changed: str
    files_removed: str
    files_moved: str
    files_applied: str
    assurance: Mapping[str, str]
    next_head: str
    withheld_head: str
    answers_for: str
    more: str
    no_output: str
    success_with_gaps: str
    # the cost line
    rounds_cost: str
    calls_cost: str
    tokens_cost: str
    cached_cost: str
    unpriced_cost: str
    go_on: str
    undo: str
    task: str
    allow: str
    tools_cost: str
    # the conversation
    banner: str
    unknown_slash: str
    slash_help: str
    image_shown: str
    image_not_shown: str
    nothing_yet: str
    audit_parts: tuple[str, ...]


ENGLISH: Final = Text(
    language="en",
    reading="reading the request",
    planning="planning",
    replanning="planning again ({directive})",
    dispatching="starting",
    waiting="waiting",
    thinking="choosing a step",
    checking="checking",
    merging="putting the results together",
    deciding="deciding",
    stopping="stopping; what was reached is being put together",
    stop_hint="Ctrl-C again exits at once",
    asking="waiting for your answer: {title}",
    ask_prompt="Allow it? [o]nce, for this [t]ask, [N]o: ",
    plan_prompt="Run it? [y]es, [n]o, or say what must be different: ",
    words_prompt="Your answer: ",
    plan_head="approve the plan",
    held_prompt="Interrupted. What should be different? (Enter: go on, Ctrl-C: end the task) ",
    typing_hint="type to steer; Ctrl-C interrupts",
    ask_source="first named by: {source}",
    answered={
        "once": "allowed once",
        "task": "allowed for this task",
        "no": "not allowed",
        "keep": "kept for later",
        "discard": "discarded",
    },
    answered_elsewhere="answered in the {where}: {said}",
    round="round {number}",
    attempt="attempt {number}",
    runs="runs {command}",
    subtasks="{count} subtasks",
    carried="{count} carried over",
    refused_plan="plan refused: {reason}",
    correction="corrected: {reason}",
    matched="its criteria hold",
    unjudged="an answer",
    unconfirmed="an answer, not confirmed",
    settling="reading what it changed",
    failed="failed: {reason}",
    trouble="{role}: {reason}",
    done_head="Reached",
    unmet_head="Not met",
    tried_head="Tried",
    files_made="Made:",
    files_changed="Changed:",
    files_removed="Removed:",
    files_moved="Moved:",
    files_applied="Applied:",
    assurance={
        "checked": "Checked.",
        "agreed": "Two ways agree.",
        "judged": "Judged, not checked.",
        "unverified": "Not confirmed by anything.",
    },
    next_head="Next",
    withheld_head="Kept back (Law 1)",
    answers_for="answers for it: {role}",
    more="and {count} more",
    no_output="(no output)",
    success_with_gaps="There are gaps.",
    rounds_cost="{count} rounds",
    calls_cost="{count} model calls",
    tokens_cost="{count} tokens",
    cached_cost="{share} cached",
    unpriced_cost="without price: {count} calls",
    go_on="To go on with it: artoo resume {task}",
    undo="put it back: {command}",
    task="task {task}",
    allow="To allow it: {line}",
    tools_cost="{count} tool calls",
    banner="artoo {version}. Say what you want done; /help lists commands, Ctrl-D leaves.",
    unknown_slash="There is no {name}; /help lists what there is.",
    slash_help="Anything else is a request. Ctrl-C stops a running task, Ctrl-D leaves.",
    image_shown="image: {name}",
    image_not_shown="{name} is not shown to the model: none is said to take images (models.brain.images)",
    nothing_yet="Nothing has run in this session yet.",
    audit_parts=(
        "{count} tasks",
        "{count} rounds",
        "{count} corrections",
        "{count} refused messages",
        "{count} dropped messages",
    ),
)

CHINESE: Final = Text(
    language="zh",
    reading="正在理解请求",
    planning="正在规划",
    replanning="重新规划（{directive}）",
    dispatching="正在启动",
    waiting="等待中",
    thinking="正在选择下一步",
    checking="正在核验",
    merging="正在汇总结果",
    deciding="正在判定",
    stopping="正在停止，整理已得到的部分",
    stop_hint="再按一次 Ctrl-C 立即退出",
    asking="等待您的确认：{title}",
    ask_prompt="允许吗？一次 [o]，本任务 [t]，否 [N]：",
    plan_prompt="执行吗？是 [y]，否 [n]，或写出要修改的地方：",
    words_prompt="您的回答：",
    plan_head="批准计划",
    held_prompt="已中断。要怎么改？（回车：继续，Ctrl-C：结束任务）",
    typing_hint="直接输入可调整任务；Ctrl-C 中断",
    ask_source="最先提到它的是：{source}",
    answered={
        "once": "已允许一次",
        "task": "本任务内已允许",
        "no": "未允许",
        "keep": "留待以后",
        "discard": "已丢弃",
    },
    answered_elsewhere="已在 {where} 回答：{said}",
    round="第 {number} 轮",
    attempt="第 {number} 次尝试",
    runs="正在运行 {command}",
    subtasks="{count} 个子任务",
    carried="沿用 {count} 个",
    refused_plan="计划被拒绝：{reason}",
    correction="已纠正：{reason}",
    matched="符合标准",
    unjudged="有答案",
    unconfirmed="有答案，但未证实",
    settling="正在读取它所做的更改",
    failed="失败：{reason}",
    trouble="{role}：{reason}",
    done_head="已得到",
    unmet_head="未满足",
    tried_head="已尝试",
    files_made="新建：",
    files_changed="修改：",
    files_removed="删除：",
    files_moved="移动：",
    files_applied="已应用：",
    assurance={
        "checked": "已核验。",
        "agreed": "两种方法结果一致。",
        "judged": "仅经模型判断，未核验。",
        "unverified": "没有任何依据证实。",
    },
    next_head="下一步",
    withheld_head="未执行（第一定律）",
    answers_for="责任角色：{role}",
    more="另有 {count} 项",
    no_output="（无输出）",
    success_with_gaps="但有缺口。",
    rounds_cost="{count} 轮",
    calls_cost="{count} 次模型调用",
    tokens_cost="{count} 个 token",
    cached_cost="{share} 命中缓存",
    unpriced_cost="另有 {count} 次调用没有价格",
    go_on="继续执行：artoo resume {task}",
    undo="撤销：{command}",
    task="任务 {task}",
    allow="允许它：{line}",
    tools_cost="{count} 次工具调用",
    banner="artoo {version}。请直接说出您的需求；/help 查看命令，Ctrl-D 退出。",
    unknown_slash="没有 {name} 这个命令；/help 查看可用命令。",
    slash_help="其他输入都视为请求。Ctrl-C 停止正在运行的任务，Ctrl-D 退出。",
    image_shown="图片：{name}",
    image_not_shown="模型看不到 {name}：没有声明支持图片的模型（models.brain.images）",
    nothing_yet="本次会话还没有运行过任务。",
    audit_parts=("{count} 个任务", "{count} 轮", "{count} 次纠正", "{count} 条被拒消息", "{count} 条丢失消息"),
)


def in_language(language: str) -> Text:
    """The sentences for a BCP 47 tag; English where there is no translation."""
    return CHINESE if language.lower().startswith("zh") else ENGLISH


def directive_name(name: str, text: Text) -> str:
    """A macro-state for people."""
    return _choose(DIRECTIVES, name, text)


def role_name(name: str, text: Text) -> str:
    """A role for people."""
    return _choose(ROLES, name, text)


def decider_name(name: str, text: Text) -> str:
    """What decided a verdict, for people; `open` for what nobody did."""
    return _choose(DECIDERS, name, text)


def _choose(table: dict[str, tuple[str, str]], name: str, text: Text) -> str:
    english, chinese = table.get(name, (name, name))
    return chinese if text.language == "zh" else english


def count(template: str, number: int) -> str:
    """`2 rounds`, `1 round`: fills `{count}` and drops the English plural's s for one."""
    filled = template.format(count=f"{number:,}")
    return filled.removesuffix("s") if number == 1 and filled.isascii() else filled
