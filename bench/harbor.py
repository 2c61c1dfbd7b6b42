"""Runs artoo in Harbor: `harbor run --agent-import-path bench.harbor:ArtooInHarbor --model openai/NAME …`.

Harbor needs Python 3.12 and is not installed with artoo. The containers need a Python of 3.11 or later with pip.
"""

# pyright: basic, reportMissingImports=false

from __future__ import annotations

import json
import shlex
from pathlib import Path

from harbor.agents.agent_auth_resolution import ModelConnectionSpec
from harbor.agents.capabilities import AgentCapabilities
from harbor.agents.installed.base import BaseInstalledAgent, with_prompt_template
from harbor.environments.base import BaseEnvironment
from harbor.models.agent.context import AgentContext
from harbor.models.model_api_format import ModelApiFormat

_RESULT = "artoo.json"


class ArtooInHarbor(BaseInstalledAgent):
    """artoo's command line in a task's container, where everything takes effect unasked.

    `wheel` is a wheel file on this machine; without it, the package index of the container provides artoo.
    """

    capabilities = AgentCapabilities(base_url=True)
    MODEL_CONNECTION = ModelConnectionSpec(
        default_provider="openai", supported_api_formats=[ModelApiFormat.OPENAI_CHAT_COMPLETIONS]
    )

    def __init__(self, *args, wheel: str | None = None, **kwargs) -> None:
        super().__init__(*args, **kwargs)
        self._wheel = None if wheel is None else Path(wheel)

    @staticmethod
    def name() -> str:
        """Return the name in Harbor's results."""
        return "artoo"

    def get_version_command(self) -> str | None:
        """Return the command that prints the version."""
        return "artoo --version"

    async def install(self, environment: BaseEnvironment) -> None:
        """Install artoo with pip into an environment of its own, because some images keep pip from the system's."""
        wanted = "artoo" if self._version is None else f"artoo=={self._version}"
        if self._wheel is not None:
            wanted = f"/installed-agent/{self._wheel.name}"
            await environment.upload_file(self._wheel, wanted)
        place = "/opt/artoo"
        pip = f"{place}/bin/pip install {shlex.quote(wanted)}"
        await self.exec_as_root(
            environment, f"python3 -m venv {place} && {pip} && ln -sf {place}/bin/artoo /usr/local/bin/artoo"
        )

    @with_prompt_template
    async def run(self, instruction: str, environment: BaseEnvironment, context: AgentContext) -> None:
        """Do the task. A task that artoo gives up (exit code 1) is a result; any other failure is an error."""
        access = self.model_connection
        named = {
            "OPENAI_BASE_URL": access.execution_base_url,
            "OPENAI_API_KEY": access.api_key,
            "OPENAI_MODEL": access.model_id,
        }
        environ = {key: value for key, value in named.items() if value} | {"ARTOO_APPLY": "all"}
        file = self.environment_logs_dir / _RESULT
        command = f"artoo run --json {shlex.quote(instruction)} > {file} || test $? = 1"
        await self.exec_as_agent(environment, command, env=environ)

    def populate_context_post_run(self, context: AgentContext) -> None:
        """Report what artoo used, and how it ended."""
        file = self.logs_dir / _RESULT
        if not file.is_file():
            return
        told = json.loads(file.read_text(encoding="utf-8").splitlines()[-1])
        cost = told["cost"]
        context.n_input_tokens = cost["prompt_tokens"]
        context.n_cache_tokens = cost["cached_tokens"]
        context.n_output_tokens = cost["completion_tokens"]
        context.metadata = {key: told[key] for key in ("status", "assurance", "stopped_by", "task_id")}
