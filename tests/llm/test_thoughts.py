"""Thoughts are told from words by their marks, and calls in text are read by their forms."""

from __future__ import annotations

import pytest

from artoo.contracts.errors import ModelAnswerInvalid
from artoo.llm.text.call_forms import formed_calls
from artoo.llm.text.reading import Unreadable
from artoo.llm.text.steps import turn_of
from artoo.llm.text.thoughts import split_thoughts
from artoo.ports.tools import INTEGER, Parameter, ToolSpec
from artoo.testing import Reply, ScriptedModel
from llm.asking import question
from llm.conversing import TOOLS, conversation

DRAFT = 'Maybe {"tool": "shell", "command": "echo draft"}, but that is wrong.'
FORMS = {
    "tags": "<think>%s</think>%s",
    "tags with attributes": '<think effort="low">\n%s\n</think>\n%s',
    "other tags": "<scratchpad>%s</scratchpad>%s",
    "analysis": "<analysis>%s</analysis>%s",
    "seed": "<seed:think>%s<seed:cot_budget_reflect>x</seed:cot_budget_reflect></seed:think>%s",
    "no beginning": "%s</think>%s",
    "mistral": "[THINK]%s[/THINK]%s",
    "kimi": "◁think▷%s◁/think▷%s",
    "cohere": "<|START_THINKING|>%s<|END_THINKING|><|START_RESPONSE|>%s<|END_RESPONSE|>",
    "gemma": "<|channel>thought\n%s<channel|>%s",
    "harmony": "<|channel|>analysis<|message|>%s<|end|><|start|>assistant<|channel|>final<|message|>%s",
    "harmony with its end": "<|channel|>analysis<|message|>%s"
    "<|start|>assistant<|channel|>final<|message|>%s<|return|>",
    "harmony without marks": "analysis%sassistantfinal%s",
    "apertus": "<|inner_prefix|>%s<|inner_suffix|>%s",
    "open thinker": "<|begin_of_thought|>%s<|end_of_thought|><|begin_of_solution|>%s<|end_of_solution|>",
    "longcat": "<longcat_think>%s</longcat_think>%s",
    "thought process": "<thought_process>\n%s\n</thought_process>\n<response>%s</response>",
    "bars": "<|thinking|>%s<|/thinking|>%s",
    "bars with an end": "<|think|>%s<|end_think|>%s",
    "brackets": "[REASONING]%s[/REASONING]%s",
    "apriel": "%s[BEGIN FINAL RESPONSE]%s\n[END FINAL RESPONSE]",
    "two": "<think>first</think>\n<think>%s</think>%s",
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
async def test_the_answer_is_taken_and_not_the_draft(form: str) -> None:
    """For questions and for turns, whatever marks a model uses."""
    final = '{"tool": "shell", "command": "echo final"}'
    with ScriptedModel({"Step": form % (DRAFT, final)}) as model:
        assert (await model.ask(question())).value.command == "echo final"
    with ScriptedModel({"ExecutorStep": Reply(message={"content": form % (DRAFT, "All is done.")})}) as model:
        assert (await model.converse(conversation())).turn.text == "All is done."
    with ScriptedModel({"ExecutorStep": form % (DRAFT, final)}, refuse=["native"]) as model:
        (call,) = (await model.converse(conversation())).turn.calls
        assert call.arguments == {"command": "echo final"}


@pytest.mark.parametrize(
    "text",
    [
        *("<think>\n" + DRAFT, "[THINK]" + DRAFT, "<|channel|>analysis<|message|>" + DRAFT, "◁think▷" + DRAFT),
        *("<longcat_think>" + DRAFT, "<|thinking|>\n" + DRAFT, "<thought_process>" + DRAFT, "[REASONING]" + DRAFT),
    ],
)
async def test_nothing_of_an_unclosed_thought_is_done(text: str) -> None:
    """In neither dialect."""
    for refuse in ([], ["native"]):
        reply = Reply(message={"content": text})
        with (
            ScriptedModel({"ExecutorStep": [reply, reply]}, refuse=refuse) as model,
            pytest.raises(ModelAnswerInvalid, match="still thinking"),
        ):
            await model.converse(conversation())


@pytest.mark.parametrize(
    "text",
    [
        "Use `<think>` for thoughts.",
        "```html\n<think>\nx\n</think>\n```",
        "a < b and <b>bold</b>",
        "analysis of x",
        "[ANALYSIS](a.md) [Thinking] x",
    ],
)
def test_words_about_thoughts_are_words(text: str) -> None:
    """A mark in the middle of a line, or in a block, marks nothing."""
    assert split_thoughts(text) == (text, "", False)


CALLS = {
    "hermes": '<tool_call>\n{"name": "shell", "arguments": {"command": "ls"}}\n</tool_call>',
    "llama": '<|python_tag|>{"name": "shell", "parameters": {"command": "ls"}}',
    "llama 3": '<function=shell>{"command": "ls"}</function>',
    "mistral": '[TOOL_CALLS] [{"name": "shell", "arguments": {"command": "ls"}}]',
    "mistral 11": '[TOOL_CALLS]shell[ARGS]{"command": "ls"}',
    "deepseek": "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>shell\n"
    '```json\n{"command": "ls"}\n```'
    "<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
    "kimi": "<|tool_calls_section_begin|><|tool_call_begin|>functions.shell:0<|tool_call_argument_begin|>"
    '{"command": "ls"}<|tool_call_end|><|tool_calls_section_end|>',
    "glm": "<tool_call>shell\n<arg_key>command</arg_key>\n<arg_value>ls</arg_value>\n</tool_call>",
    "qwen coder": "<tool_call>\n<function=shell>\n<parameter=command>\nls\n</parameter>\n</function>\n</tool_call>",
    "invoke": '<invoke name="shell">\n<parameter name="command">ls</parameter>\n</invoke>',
    "cohere": '<|START_ACTION|>[{"tool_name": "shell", "parameters": {"command": "ls"}}]<|END_ACTION|>',
    "granite": '<|tool_call|>[{"name": "shell", "arguments": {"command": "ls"}}]',
    "harmony": '<|channel|>commentary to=functions.shell <|constrain|>json<|message|>{"command": "ls"}<|call|>',
    "jamba": '<tool_calls>[{"name": "shell", "arguments": {"command": "ls"}}]</tool_calls>',
    "nemotron": '<TOOLCALL>[{"name": "shell", "arguments": {"command": "ls"}}]</TOOLCALL>',
    "internlm": '<|action_start|><|plugin|>{"name": "shell", "parameters": {"command": "ls"}}<|action_end|>',
    "longcat": "<longcat_tool_call>shell\n<longcat_arg_key>command</longcat_arg_key>\n"
    "<longcat_arg_value>ls</longcat_arg_value>\n</longcat_tool_call>",
    "deepseek 3.2": '<｜DSML｜function_calls>\n<｜DSML｜invoke name="shell">\n'
    '<｜DSML｜parameter name="command" string="true">ls</｜DSML｜parameter>\n</｜DSML｜invoke>\n'
    "</｜DSML｜function_calls>",
}
BARE = {
    "llama 4": '<|python_start|>[shell(command="ls")]<|python_end|>',
    "pythonic": '[shell(command="ls")]',
    "gemma": '```tool_code\nshell(command="ls")\n```',
    "olmo": '<function_calls>\nshell(command="ls")\n</function_calls>',
    "list": '[{"name": "shell", "arguments": {"command": "ls"}}]',
    "object": '{"name": "shell", "arguments": {"command": "ls"}}',
}


@pytest.mark.parametrize("text", (CALLS | BARE).values(), ids=CALLS | BARE)
async def test_a_call_that_a_server_hands_through_is_made(text: str) -> None:
    """It is read by its form."""
    with ScriptedModel({"ExecutorStep": Reply(message={"content": text})}) as model:
        (call,) = (await model.converse(conversation())).turn.calls
    assert (call.name, call.arguments) == ("shell", {"command": "ls"})


@pytest.mark.parametrize(
    "text",
    ['shell(command="ls"', "[shell(command=open('x'))]", 'print(command="a")', '[{"name": "ls", "arguments": {}}]'],
)
async def test_what_only_looks_like_a_call_is_words(text: str) -> None:
    """It has another name than a tool's, no end, or something to work out."""
    with ScriptedModel({"ExecutorStep": Reply(message={"content": text})}) as model:
        turn = (await model.converse(conversation())).turn
    assert (turn.calls, turn.text) == ((), text)


@pytest.mark.parametrize("text", CALLS.values(), ids=CALLS)
async def test_half_of_such_a_call_costs_a_repair(text: str) -> None:
    """It is never made, and the model may try again."""
    half = text[: text.index("command") + 5]
    assert formed_calls(half)[-1].value is None
    with ScriptedModel({"ExecutorStep": [Reply(message={"content": half}), "Done."]}) as model:
        spoken = await model.converse(conversation())
    assert (spoken.turn.calls, spoken.turn.text, spoken.repaired) == ((), "Done.", True)


def test_what_json_can_say_and_text_cannot_is_cleaned_up_or_refused() -> None:
    """Half an emoji is replaced, and what is nested too deeply is half a call."""
    marked = '<tool_call>{"name": "shell", "arguments": {"command": %s}}</tool_call>'
    (call,) = turn_of(marked % r'"echo \ud83d"', TOOLS, "c").calls
    assert call.arguments == {"command": "echo ?"}
    for depth in (200, 900):
        with pytest.raises(Unreadable):
            turn_of(marked % ("[" * depth + "]" * depth), TOOLS, "c")


def test_a_zero_in_the_place_of_the_input_is_input() -> None:
    """As false is."""
    tool = ToolSpec("wait", "Wait.", (Parameter("seconds", "how long", schema=INTEGER),), 1)
    (call,) = turn_of('{"tool": "wait", "input": 0}', [tool], "c").calls
    assert call.arguments == {"seconds": "0"}


async def test_a_call_that_is_shown_is_not_made() -> None:
    """Documentation of a form stands in a block."""
    text = f"Write it like this:\n```\n{CALLS['hermes']}\n```"
    with ScriptedModel({"ExecutorStep": Reply(message={"content": text})}) as model:
        turn = (await model.converse(conversation())).turn
    assert (turn.calls, turn.text) == ((), text)
