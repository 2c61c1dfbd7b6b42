"""What people call a task's roles, the control law's decisions and who decides criteria, in English and Chinese."""

from __future__ import annotations

from typing import Final

from artoo.contracts.solution import Decided, Directive

ROLES: Final = {
    "user": ("you", "用户"),
    "perceiver": ("perceiver", "感知者"),
    "planner": ("planner", "规划者"),
    "dispatcher": ("dispatcher", "调度者"),
    "executor": ("executor", "执行者"),
    "agent_validator": ("validator", "验证者"),
    "meta_validator": ("meta-validator", "总验证者"),
    "solver": ("solver", "求解者"),
    "gate": ("gate", "安全门"),
}

DIRECTIVES: Final = {
    "accept": ("accepted", "通过"),
    "success": ("good enough, with gaps", "基本达成，但有缺口"),
    "abandon": ("stops here", "到此为止"),
    "break_symmetry": ("dead end: other tools", "死路：换用其他工具"),
    "change_approach": ("wrong way: another approach", "方法不对：换一种方法"),
    "change_path": ("right way, stuck: another path", "方法对但受阻：换一条路径"),
    "refine": ("getting there: mends what is missing", "在接近：补上缺少的部分"),
    "init": ("start", "开始"),
}
"""Macro-states: what the control law found, and what follows from it."""

_STATES: Final = {**DIRECTIVES, "unconfirmed": ("answered, not confirmed", "已回答，但未证实")}


def led_to(decided: Decided, language: str) -> str:
    """What a round led to. A success in which nothing failed has no gap: nothing has confirmed the answer."""
    failed = decided.logical_failures + decided.environmental_failures
    unconfirmed = decided.directive is Directive.SUCCESS and not failed
    english, chinese = _STATES["unconfirmed" if unconfirmed else decided.directive.value]
    return chinese if language == "zh" else english


DECIDERS: Final = {
    "check": ("check", "检查"),
    "fact": ("fact", "事实"),
    "agreement": ("agreement", "一致"),
    "judgement": ("judgement", "判断"),
    "nobody": ("open", "未定"),
}
"""What decided a verdict; what nobody decided is open."""
