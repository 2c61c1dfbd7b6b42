from __future__ import annotations

import json
from typing import ClassVar, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict

from artoo.contracts.criteria import Criterion
from artoo.contracts.plan import Plan, PlannedSubTask
from artoo.llm.text.reading import Unreadable, read_answer


class Step(BaseModel):
    model_config = ConfigDict(extra="forbid")
    tool: str
    command: str = ""
    final: bool = False
    note: str | None = None


class Worded(BaseModel):
    body_is_words: ClassVar[bool] = True
    tool: str = ""
    command: str = ""


class Program(BaseModel):
    command: str = ""


SHELL = Step(tool="shell")


@pytest.mark.parametrize(
    "text",
    [
        '{"tool": "shell"}',
        '\n  {"tool": "shell"}  ',
        '```json\n{"tool": "shell"}\n```',
        '```\n{"tool": "shell"}\n```\nDone.',
        'Here you are: {"tool": "shell"} I hope it helps {really}.',
        '<think>Perhaps {"tool": "glob"}?</think>{"tool": "shell"}',
        '<THINKING>a</THINKING>\n<think>b</think>{"tool": "shell"}',
        'the start of the thought was in the template {"tool": "glob"}</think>{"tool": "shell"}',
        '<think>first {"tool": "glob"} then {"tool": "shell"}',
        '{"tool": "shell",}',
        '{"tool": "shell", "final": false, // no\n}'.replace("// no\n", ""),
        "{'tool': 'shell', 'final': False, 'note': None}",
        '{"unrelated": 1} and {"tool": "shell"}',
        '{"tool": 5} no, sorry: {"tool": "shell"}',
        '{"Step": {"tool": "shell"}}',
        '{"tool": "shell", "confidence": 0.9}',
        '{"tool": "shell", "command": null}',
        '[{"tool": "shell"}]',
        'set {a, b}: {"tool": "shell"}',
    ],
)
def test_reads_through_what_models_put_around(text: str):
    """Fences, thoughts, prose, Python literals, trailing commas, other objects and fields hide no answer."""
    assert read_answer(text, Step) == SHELL


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "empty"),
        ("  \n ", "empty"),
        ("<think>hm</think>", "empty"),
        ("I cannot do that.", "no JSON object"),
        ('{"tool": "shell"', "cut off"),
        ('{"tool": "shell", "note": {"tool": "glob"}', "cut off"),
        ('{"tool": ["shell"]}', "tool: "),
        ('{"command": "ls"}', "tool: "),
        ('{"note": null}', "tool: "),
        ('{"tool": "echo "hi""}', "no valid JSON"),
        ('{"tool": 1' + "0" * 5_000 + "}", "more digits than can be read"),
        ("[]", "no JSON object"),
        ("null", "no JSON object"),
        ('"text"', "no JSON object"),
    ],
)
def test_says_what_is_wrong(text: str, problem: str):
    """What cannot be read gives a problem that names the field or the fault, in one short line."""
    with pytest.raises(Unreadable) as caught:
        read_answer(text, Step)
    assert problem in caught.value.problem
    assert len(caught.value.problem) < 400
    assert "\n" not in caught.value.problem


def test_harmless_faults_in_nested_unions():
    """Unknown fields and nulls are dropped inside lists and tagged unions too."""
    text = (
        '{"subtasks": [{"intent": "a", "context": null, "id": 7, "success_criteria": '
        '["short", {"text": "b", "check": {"check": "file_exists", "path": "c", "why": "d"}}]}]}'
    )
    plan = read_answer(text, Plan)
    assert plan.subtasks[0].intent == "a"
    assert plan.subtasks[0].success_criteria[0] == Criterion(text="short")
    assert plan.subtasks[0].success_criteria[1].check is not None


BODY = 'for f in *; do echo "$f" | awk \'{print $1}\'; done\necho `date` "{"'


@pytest.mark.parametrize(
    "text",
    [
        f'{{"tool": "shell"}}\n```bash\n{BODY}\n```',
        f'{{"tool": "shell"}}\n```\n{BODY}\n```\nThis lists files.',
        f'```json\n{{"tool": "shell"}}\n```\n```bash\n{BODY}\n```',
        f'```json\n{{"tool": "shell"}}\n```\n\n```\n{BODY}\n```',
        f'```json\n{{"tool": "shell"}}\n```bash\n{BODY}\n```',
        f'<think>x</think>Sure.\n{{"tool": "shell"}}\nCommand:\n~~~sh\n{BODY}\n~~~',
        f'{{"tool": "shell"}}\n````bash\n{BODY}\n````',
        f'```bash\n{BODY}\n```\n{{"tool": "shell"}}',
        f'{{"tool": "shell"}}\n```bash\n{BODY}',
        json.dumps({"tool": "shell", "command": BODY}),
        f'{{"tool": "shell", "command": ""}}\n```bash\n{BODY}\n```',
    ],
)
def test_body_travels_in_a_fence(text: str):
    """The block after (or before) the header is the body, word for word; inside the JSON it is accepted as well."""
    assert read_answer(text, Step, body_field="command") == Step(tool="shell", command=BODY)


_CODE = "Run it:\n\n```sh\npython3 hi.py\n```\n\nThe licence is missing."
_BARE = "Run it:\n\n```\npython3 hi.py\n```\n\nThe licence is missing."


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (f"```\n{_CODE}\n```", _CODE),
        (f"```text\n{_CODE}\n```\n", _CODE),
        (f"```\n{_BARE}\n```", _BARE),
        (f"```\n{_CODE}", _CODE),
        (f"```\n{_BARE}", _BARE),
        (f"````\n{_CODE}\n````\nThat is all.", _CODE),
        ("```\n42\n```\n```", "42"),
        ("```\n42\n```\nThis rests on call 1.", "42"),
        (_CODE, _CODE),
        ("It is 42.", "It is 42."),
        ('```json\n{"a": 1}\n```', '{"a": 1}'),
        ("```sh\nls\n```\nlists the files.", "```sh\nls\n```\nlists the files."),
        ("```\nfirst\n```sh\nls\n```\n```\nx\n```\nlast\n```", "first\n```sh\nls\n```\n```\nx\n```\nlast"),
    ],
)
def test_words_keep_the_blocks_inside_them(said: str, words: str):
    """What a person reads ends at the last fence that can end it, and needs none: nothing of it is lost."""
    given = f'Thinking.\n{{"tool": "answer"}}\n{said}'
    assert read_answer(given, Worded, body_field="command").command == words
    within = f'```json\n{{"tool": "answer"}}\n```\n{said}'
    assert read_answer(within, Worded, body_field="command").command == words


def test_a_program_ends_at_its_own_fence():
    """A block within one is seen by its info string; what follows the first whole one is not of it."""
    program = "cat > a.md <<'E'\n```sh\nls\n```\nE\necho done"
    given = f'{{"tool": "shell"}}\n```bash\n{program}\n```\nThen:\n```\nother\n```'
    assert read_answer(given, Step, body_field="command").command == program
    unclosed_within = '{"tool": "shell"}\n```python\nprint("""\n```sh\n""")\n```'
    assert read_answer(unclosed_within, Step, body_field="command").command == 'print("""\n```sh\n""")'


def test_a_bare_block_is_the_body():
    """Without a header the block is the body, and words alone are it if the body is words."""
    assert read_answer('```bash\necho "{"\n```', Program, body_field="command").command == 'echo "{"'
    assert read_answer("It is 42.", Worded, body_field="command").command == "It is 42."
    for text, cut in (("It is 42.", False), ("```bash\nls", True)):
        with pytest.raises(Unreadable):
            read_answer(text, Program, body_field="command", cut=cut)
    with pytest.raises(Unreadable, match="tool"):
        read_answer("```python\nd = {}\n```", Step, body_field="command")


@given(
    st.builds(
        Plan,
        subtasks=st.lists(
            st.builds(PlannedSubTask, intent=st.text(), success_criteria=st.just(())), min_size=1, max_size=3
        ).map(tuple),
        task_criteria=st.just(()),
    ),
    st.sampled_from(["{}", "```json\n{}\n```", "<think>no {{</think>\n{}", "Answer:\n{}\nBye", "{}\n\n{}"]),
    st.sampled_from([None, 2]),
)
@settings(max_examples=80, deadline=None)
def test_what_was_written_is_read(plan: Plan, around: str, indent: int | None):
    """Whatever a plan holds, in whatever wrapping, the same plan comes out."""
    text = plan.model_dump_json(indent=indent)
    assert read_answer(around.replace("{{", "x").replace("{}", text), Plan) == plan


@given(st.text(alphabet="{}[]\"'\\:,`\n ab1<think>/", max_size=300), st.booleans())
@settings(max_examples=300, deadline=None)
def test_garbage_is_refused_and_nothing_else(text: str, with_body: bool):
    """No text makes the reader fail in any other way than by saying that it is unreadable."""
    try:
        read_answer(text, Step, body_field="command" if with_body else None)
    except Unreadable as unreadable:
        assert unreadable.problem


def test_long_garbage_is_read_in_reasonable_time():
    """Thousands of braces cost no more than a bounded number of attempts."""
    for text in ('{"a": ' * 2_000, "{'" * 5_000, "{}" * 10_000, "```\n" * 5_000, "<think>" * 5_000):
        with pytest.raises(Unreadable):
            read_answer(text, Step, body_field="command")


class Rests(BaseModel):
    model_config = ConfigDict(extra="forbid")
    sources: tuple[int, ...] = ()
    inner: Literal["x"] | Step | None = None
    names: list[str] = []


@pytest.mark.parametrize(
    ("told", "sources"),
    [
        ({"sources": 3}, (3,)),
        ({"sources": "3"}, (3,)),
        ({"sources": "call 3"}, (3,)),
        ({"sources": ["[1]", "call 2", 4]}, (1, 2, 4)),
        ({"sources": ["1 and 2"]}, None),
        ({"sources": ["none"]}, None),
        ({"sources": {"a": 1}}, None),
    ],
)
def test_a_number_in_a_text_and_a_list_of_one(told: dict[str, object], sources: tuple[int, ...] | None):
    """Both cost a call and were plain; a text with two numbers, or none, may mean anything."""
    if sources is None:
        with pytest.raises(Unreadable, match="sources"):
            read_answer(json.dumps(told), Rests)
    else:
        assert read_answer(json.dumps(told), Rests).sources == sources
