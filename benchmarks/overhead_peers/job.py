"""The job that every peer does, and the loop in which a peer takes orders: one JSON line in, one out.

A chain is 6 calls: perceive, plan, execute (a tool call, then words), validate, merge. A fan-out is a plan, then N
times (work, review) at once, then a merge. Needs the standard library only, for it runs in every peer's
environment.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import resource
import sys
import time
from collections.abc import Awaitable, Callable

KEY = "sk-benchmark"
MODEL = "mock"
FACT = "The capital of France is Paris."
GOAL = "Look up the capital of France and report it."
CRITERION = "The result does what was asked: " + GOAL

# So much that a request is as long as artoo's own for the same stage (`request_bytes` says how long they are).
_SYSTEM_CHARACTERS = {
    "TaskSpec": 870,
    "Plan": 4_430,
    "ExecutorStep": 2_030,
    "ValidationReport": 1_320,
    "MergeReport": 1_090,
}
_RULE = "Report only what the evidence shows, including failure, and answer in the form that is asked for. "

SCHEMAS: dict[str, dict[str, object]] = {
    "TaskSpec": {"type": "object", "properties": {"intent": {"type": "string"}}, "required": ["intent"]},
    "Plan": {
        "type": "object",
        "properties": {
            "subtasks": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "intent": {"type": "string"},
                        "tool": {"type": "string"},
                        "success_criteria": {"type": "array", "items": {"type": "string"}},
                    },
                },
            }
        },
        "required": ["subtasks"],
    },
    "ValidationReport": {
        "type": "object",
        "properties": {
            "verdicts": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "number": {"type": "integer"},
                        "quote": {"type": "string"},
                        "verdict": {"enum": ["pass", "fail"]},
                    },
                },
            }
        },
        "required": ["verdicts"],
    },
}
SCHEMAS["MergeReport"] = SCHEMAS["ValidationReport"]
TOOL: dict[str, object] = {
    "type": "function",
    "function": {
        "name": "lookup",
        "description": "Looks up a fact.",
        "parameters": {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
    },
}


def lookup(query: str) -> str:
    """The tool: knows one fact, and says what it was asked."""
    return f"The capital of France is Paris (asked: {query})."


def fan_goal(parts: int) -> str:
    """The request of a fan-out; the mock server plans as many parts as it names."""
    return f"Look up the notes of the parts [[parts:{parts}]] and put them together."


def messages(stage: str, text: str) -> list[dict[str, object]]:
    """The two messages of a stage."""
    size = _SYSTEM_CHARACTERS[stage]
    system = (_RULE * (size // len(_RULE) + 1))[:size] + f"\ncontract: {stage}"
    return [{"role": "system", "content": system}, {"role": "user", "content": text}]


def schema_format(stage: str) -> dict[str, object]:
    """The response format of a stage that answers in JSON."""
    return {"type": "json_schema", "json_schema": {"name": stage, "schema": SCHEMAS[stage]}}


class Caller:
    """A peer's own way to make one call: returns the assistant message as a mapping with `content`."""

    def __init__(self, call: Callable[..., Awaitable[dict[str, object]]]) -> None:
        self._call = call

    async def structured(self, stage: str, text: str) -> dict[str, object]:
        """A stage that answers in JSON."""
        answer = await self._call(messages=messages(stage, text), response_format=schema_format(stage))
        return json.loads(str(answer["content"]))

    async def with_tool(self, text: str) -> str:
        """The execution stage: a tool call, then words."""
        asked = messages("ExecutorStep", text)
        while True:
            answer = await self._call(messages=asked, tools=[TOOL])
            calls = answer.get("tool_calls")
            if not calls:
                return str(answer["content"])
            asked.append({"role": "assistant", "content": answer.get("content"), "tool_calls": calls})
            for call in calls:
                given = json.loads(call["function"]["arguments"])
                asked.append({"role": "tool", "tool_call_id": call["id"], "content": lookup(**given)})

    async def words(self, text: str) -> str:
        """The work stage of a fan-out: one answer in words."""
        return str((await self._call(messages=messages("ExecutorStep", text)))["content"])

    async def chain(self) -> str:
        """Six calls, one after the other."""
        spec = await self.structured("TaskSpec", GOAL)
        plan = await self.structured("Plan", str(spec["intent"]))
        result = await self.with_tool(str(plan["subtasks"]))
        await self.structured("ValidationReport", f"{CRITERION}\nClaim: {result}\nEvidence: {FACT}")
        await self.structured("MergeReport", f"{CRITERION}\n{result}")
        return result

    async def fan(self, parts: int) -> str:
        """A plan, `parts` workers of two calls each at once, a merge."""
        plan = await self.structured("Plan", fan_goal(parts))
        done = await asyncio.gather(*(self._worker(str(each)) for each in plan["subtasks"]))  # type: ignore[attr-defined]
        merged = "\n".join(done)
        await self.structured("MergeReport", f"{CRITERION}\n{merged}"[:4_000])
        return merged

    async def _worker(self, part: str) -> str:
        result = await self.words(part)
        await self.structured("ValidationReport", f"{part}\nClaim: {result}\nEvidence: {FACT}")
        return result


async def take_orders(
    chain: Callable[[], Awaitable[str]], fan: Callable[[int], Awaitable[str]], out_descriptor: int
) -> None:
    """Does what each line on the standard input says until it ends: `{"parts": 0}` is a chain."""
    loop = asyncio.get_running_loop()
    with os.fdopen(out_descriptor, "w") as out:
        print(json.dumps({"ready": True}), file=out, flush=True)
        while line := (await loop.run_in_executor(None, sys.stdin.readline)).strip():
            parts = json.loads(line)["parts"]
            gc.collect()
            cpu, started = time.process_time(), time.perf_counter()
            answer = await (fan(parts) if parts else chain())
            wall, cpu = time.perf_counter() - started, time.process_time() - cpu
            rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            result = {
                "wall": wall,
                "cpu": cpu,
                "process_cpu": time.process_time(),
                "rss_mb": rss,
                "right": answer.count("Paris") >= max(1, parts),
            }
            print(json.dumps(result), file=out, flush=True)


def own_output() -> int:
    """A descriptor of the real standard output; what else is printed goes to the standard error."""
    kept = os.dup(1)
    os.dup2(2, 1)
    return kept
