"""The names of spans, attributes and metrics by OpenTelemetry's GenAI conventions, and histogram boundaries.

The conventions are developed in their own repository (semantic-conventions-genai). The names here are those of
November 2026. Names that do not belong to the conventions begin with `artoo.`.
"""

from __future__ import annotations

# --- operations ---
OPERATION = "gen_ai.operation.name"
CHAT = "chat"
EXECUTE_TOOL = "execute_tool"
INVOKE_AGENT = "invoke_agent"
INVOKE_WORKFLOW = "invoke_workflow"
SEARCH_MEMORY = "search_memory"
CREATE_MEMORY = "create_memory"

# --- attributes of the conventions ---
PROVIDER = "gen_ai.provider.name"
REQUEST_MODEL = "gen_ai.request.model"
RESPONSE_MODEL = "gen_ai.response.model"
OUTPUT_TYPE = "gen_ai.output.type"
INPUT_TOKENS = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
CACHED_TOKENS = "gen_ai.usage.cache_read.input_tokens"
AGENT_NAME = "gen_ai.agent.name"
WORKFLOW_NAME = "gen_ai.workflow.name"
TOOL_NAME = "gen_ai.tool.name"
TOOL_TYPE = "gen_ai.tool.type"
TOOL_CALL_ID = "gen_ai.tool.call.id"
MEMORY_STORE = "gen_ai.memory.store.id"
MEMORY_RECORD = "gen_ai.memory.record.id"
MEMORY_COUNT = "gen_ai.memory.record.count"
TOKEN_TYPE = "gen_ai.token.type"
EVALUATION = "gen_ai.evaluation.result"
EVALUATION_NAME = "gen_ai.evaluation.name"
EVALUATION_LABEL = "gen_ai.evaluation.score.label"
EVALUATION_EXPLANATION = "gen_ai.evaluation.explanation"
ERROR_TYPE = "error.type"
SERVER_ADDRESS = "server.address"
SERVER_PORT = "server.port"

# --- attributes that hold content; they are set only if content is captured ---
SYSTEM_INSTRUCTIONS = "gen_ai.system_instructions"
INPUT_MESSAGES = "gen_ai.input.messages"
OUTPUT_MESSAGES = "gen_ai.output.messages"
TOOL_ARGUMENTS = "gen_ai.tool.call.arguments"
TOOL_RESULT = "gen_ai.tool.call.result"
MEMORY_QUERY = "gen_ai.memory.query.text"

# --- artoo's own ---
TASK_ID = "artoo.task.id"
SUBTASK_ID = "artoo.subtask.id"
DIRECTIVE = "artoo.directive"
STOPPED_BY = "artoo.stopped_by"
ROUND = "artoo.round"
LOSS = "artoo.loss"
GRADIENT = "artoo.loss.gradient"
ROLE = "artoo.role"
CONTRACT = "artoo.contract"
TIER = "artoo.tier"
WIRE = "artoo.wire"
REQUESTS = "artoo.requests"
REPAIRED = "artoo.repaired"
MONEY = "artoo.money"
CURRENCY = "artoo.currency"
STATUS = "artoo.status"
ATTEMPT = "artoo.attempt"
CORRECTION = "artoo.correction"
INCOMPLETE = "artoo.incomplete"

# --- measurements ---
TOKEN_USAGE = "gen_ai.client.token.usage"
OPERATION_DURATION = "gen_ai.client.operation.duration"
WORKFLOW_DURATION = "gen_ai.workflow.duration"
TOOL_DURATION = "gen_ai.execute_tool.duration"
TASKS = "artoo.tasks"
TASK_MONEY = "artoo.task.money"

TOKEN_BUCKETS = tuple(4**power for power in range(14))
CALL_BUCKETS = tuple(round(0.01 * 2**power, 2) for power in range(14))
# The bucket limits of the histogram of tasks. The limits for tokens and calls above are those of the conventions.
WORKFLOW_BUCKETS = (1, 5, 10, 30, 60, 120, 300, 600, 1_800, 3_600, 7_200)
