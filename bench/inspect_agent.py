"""Runs artoo in Inspect: `inspect eval TASK --solver bench/inspect_agent.py@artoo --model …`.

The sandbox of the task needs artoo. Its model is Inspect's, which answers behind an address in the sandbox.
"""

# pyright: basic, reportMissingImports=false

from __future__ import annotations

import json

from inspect_ai.agent import Agent, AgentState, agent, sandbox_agent_bridge
from inspect_ai.model import ChatMessageAssistant, user_prompt
from inspect_ai.util import sandbox

_GIVEN_UP = 1


@agent
def artoo(program: str = "artoo", apply: str = "all", home: str = "/tmp/artoo-home") -> Agent:
    """Do the sample's prompt with artoo's command line in the sample's sandbox."""

    async def execute(state: AgentState) -> AgentState:
        async with sandbox_agent_bridge(state) as bridge:
            environ = {
                "OPENAI_BASE_URL": f"http://127.0.0.1:{bridge.port}/v1",
                "OPENAI_API_KEY": "inspect",
                "OPENAI_MODEL": "inspect",
                "ARTOO_HOME": home,
                "ARTOO_APPLY": apply,
            }
            words = [program, "run", "--json", user_prompt(state.messages).text]
            done = await sandbox().exec(words, env=environ)
        if done.returncode not in (0, _GIVEN_UP):
            raise RuntimeError(f"artoo ended with {done.returncode}: {done.stderr or done.stdout}")
        answer = json.loads(done.stdout.splitlines()[-1])["answer"]
        bridge.state.messages.append(ChatMessageAssistant(content=answer, source="generate"))
        bridge.state.output.completion = answer
        return bridge.state

    return execute
