"""Every sentence of a review and of what became of it, in English and in Chinese."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from artoo.contracts.settling import ChangeClass


@dataclass(frozen=True, slots=True)
class ReviewWords:
    """The sentences in one language. Fields in braces are filled with `str.format`."""

    language: str
    joint: str
    head: str
    head_unfinished: str
    classes: Mapping[ChangeClass, str]
    rewritten: str
    moved: str
    arrived: str
    came_from: str
    named_head: str
    as_above: str
    conflicts_head: str
    conflict_versions: str
    conflict_deleted: str
    in_conflict: str
    conflict_hint: str
    went_out_head: str
    more_in_diff: str
    more: str
    crowd: str
    no_diff: str
    # the pager
    pager: str
    pager_end: str
    # the question
    ask: str
    ask_part: str
    ask_again: str
    which: str
    not_among: str
    chosen_head: str
    rest_waits: str
    sure_apply: str
    sure_discard: str
    sure_undo: str
    applied: str
    part_applied: str
    kept: str
    discarded: str
    # what waits, and the commands that settle it
    waits: str
    apply_hint: str
    rest_hint: str
    resume_hint: str
    diff_hint: str
    discard_hint: str
    until: str
    undo_hint: str
    is_applied: str
    is_empty: str
    is_discarded: str
    rest_discarded: str
    nothing_applied: str
    nothing_waits: str


ENGLISH: Final = ReviewWords(
    language="en",
    joint=", ",
    head="Apply what this task changed?",
    head_unfinished="This task did not reach its end. Apply what it changed all the same?",
    classes={
        ChangeClass.DELETION: "deleted",
        ChangeClass.PERSISTENCE: "runs later by itself",
        ChangeClass.HISTORY: "history rewritten",
        ChangeClass.SPECIAL: "special file",
        ChangeClass.ELSEWHERE: "outside project and workspace",
        ChangeClass.LINK: "link",
        ChangeClass.MODE: "mode or owner",
        ChangeClass.EDIT: "edited",
        ChangeClass.SILENT: "new",
    },
    rewritten="harmless",
    moved="moved",
    arrived="moved here",
    came_from="from {path}",
    named_head="Look at these one by one:",
    as_above="as above",
    conflicts_head="Changed meanwhile, so not applied (what is there now stays):",
    conflict_versions="- what is there now, + the task's",
    conflict_deleted="- what is there now; the task deleted it",
    in_conflict="{count} in conflict with what was changed meanwhile",
    conflict_hint="what is there now stays; take what you want of the task's by hand: {look}; then drop it: {drop}",
    went_out_head="Already sent, and not taken back by discarding:",
    more_in_diff="and {count} more; all are in the diff",
    more="and {count} more",
    crowd="{count} new files; see them: {command}",
    no_diff="(no text, or too long to be shown)",
    pager="-- {number}/{total}  space or n: on, p: back, q: to the end --",
    pager_end="-- end  p: back, any other key: go on --",
    ask="[a]pply all, [c]hoose, [k]eep for later, [d]iscard, [s]how again: ",
    ask_part="[c]hoose, [k]eep for later, [d]iscard, [s]how again: ",
    ask_again="Answer with one of the letters in brackets; an empty line keeps it for later.",
    which="Which? Numbers (1 3-5), paths or directories; an empty line goes back: ",
    not_among="not among them: {part}",
    chosen_head="Apply these {count}?",
    rest_waits="The rest ({count}) waits for you.",
    sure_apply="[y]es, [N]o: ",
    sure_discard="Discard all that this task changed? What it made is gone then. [y]es, [N]o: ",
    sure_undo="Put this back? [y]es, [N]o: ",
    applied="yes: all of it",
    part_applied="yes: these {count}; the rest waits",
    kept="keep it for later",
    discarded="discard it",
    waits="Waits for your yes: {what}",
    apply_hint="apply it: {command}",
    rest_hint="apply all that is not in conflict: {command}",
    resume_hint="go on with it: {command}",
    diff_hint="look at it: {command}",
    discard_hint="drop it: {command}",
    until="kept until {date}",
    undo_hint="put it back: {command}",
    is_applied="Applied:",
    is_empty="It has changed nothing.",
    is_discarded="Discarded. Your files are as they were.",
    rest_discarded="Discarded what still waited. What was applied before stays;",
    nothing_applied="Nothing was applied: {reason}",
    nothing_waits="Nothing waits for you.",
)

CHINESE: Final = ReviewWords(
    language="zh",
    joint="，",
    head="要应用此任务所做的更改吗？",
    head_unfinished="此任务没有走到终点。仍要应用它所做的更改吗？",
    classes={
        ChangeClass.DELETION: "删除",
        ChangeClass.PERSISTENCE: "以后会自行运行",
        ChangeClass.HISTORY: "改写历史",
        ChangeClass.SPECIAL: "特殊文件",
        ChangeClass.ELSEWHERE: "项目和工作区之外",
        ChangeClass.LINK: "链接",
        ChangeClass.MODE: "权限或属主",
        ChangeClass.EDIT: "修改",
        ChangeClass.SILENT: "新建",
    },
    rewritten="无害",
    moved="移动",
    arrived="移到此处",
    came_from="来自 {path}",
    named_head="请逐一查看：",
    as_above="同上",
    conflicts_head="在此期间有改动，因此不会应用（保留现有版本）：",
    conflict_versions="- 现有版本，+ 任务的版本",
    conflict_deleted="- 现有版本；任务删除了它",
    in_conflict="{count} 项与此期间的改动冲突",
    conflict_hint="现有版本保留；需要任务的版本时请手动取用：{look}；然后放弃：{drop}",
    went_out_head="已经发送，放弃更改也无法收回：",
    more_in_diff="另有 {count} 项，全部列在差异中",
    more="另有 {count} 项",
    crowd="{count} 个新文件；查看：{command}",
    no_diff="（不是文本，或太长，无法显示）",
    pager="-- {number}/{total}  空格或 n：继续，p：返回，q：到末尾 --",
    pager_end="-- 结束  p：返回，其他键：继续 --",
    ask="全部应用 [a]，挑选 [c]，留待以后 [k]，放弃 [d]，再看一遍 [s]：",
    ask_part="挑选 [c]，留待以后 [k]，放弃 [d]，再看一遍 [s]：",
    ask_again="请输入方括号中的一个字母；空行表示留待以后。",
    which="选哪些？编号（1 3-5）、路径或目录；空行返回：",
    not_among="不在其中：{part}",
    chosen_head="应用这 {count} 项？",
    rest_waits="其余 {count} 项留待您处理。",
    sure_apply="是 [y]，否 [N]：",
    sure_discard="放弃此任务的全部更改吗？它所做的内容将不再存在。是 [y]，否 [N]：",
    sure_undo="撤销这些更改吗？是 [y]，否 [N]：",
    applied="是：全部应用",
    part_applied="是：应用这 {count} 项；其余留待处理",
    kept="留待以后",
    discarded="放弃这些更改",
    waits="等待您同意：{what}",
    apply_hint="应用：{command}",
    rest_hint="应用没有冲突的部分：{command}",
    resume_hint="继续：{command}",
    diff_hint="查看：{command}",
    discard_hint="放弃：{command}",
    until="保留至 {date}",
    undo_hint="撤销：{command}",
    is_applied="已应用：",
    is_empty="它没有更改任何东西。",
    is_discarded="已放弃。您的文件保持原样。",
    rest_discarded="已放弃其余更改。之前应用的更改保留；",
    nothing_applied="没有应用任何更改：{reason}",
    nothing_waits="没有等待您处理的内容。",
)


def review_words(language: str) -> ReviewWords:
    """The sentences for a BCP 47 tag; English where there is no translation."""
    return CHINESE if language.lower().startswith("zh") else ENGLISH
