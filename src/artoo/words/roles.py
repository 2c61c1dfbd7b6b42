"""What people call the parts of a task, in English and Chinese."""

from __future__ import annotations

from typing import Final

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
