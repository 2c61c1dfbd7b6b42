"""The parts that the evidence rules are made of: names, figures, shell steps, standing of calls."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from artoo.contracts.execution import CallStatus, ToolCall
from artoo.loops.fast.evidence import assess, grounded_numbers, names_in, primary_calls
from artoo.loops.fast.evidence.calls import Standing, views_of
from artoo.loops.fast.evidence.effects import Effect, effects_of
from artoo.loops.fast.evidence.quantity import han_value, quantities
from artoo.loops.fast.evidence.shell import steps_of


def shell(command: str, output: str = "", code: int | None = 0, **more: object) -> ToolCall:
    record = {"tool": "shell", "identity": ("shell",), "input": command, "target": command, "exit_code": code}
    return ToolCall.model_validate({**record, "output": output, **more})


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("删除了报告.txt和data/a.csv，部署到prod.example.com", ("报告.txt", "data/a.csv", "prod.example.com")),
        ("in ~/docs/ and Makefile, e.g. Node.js, 1/2, .bashrc", ("~/docs/", "Makefile", ".bashrc")),
        ("Create 'two words' and `x`; see https://a.example/b?c", ("two words", "x", "https://a.example/b?c")),
        ("把「会议 记录」发给 bob@example.com，然后 ping 10.0.0.5", ("会议 记录", "bob@example.com", "10.0.0.5")),
        ("and/or 3.5 km/h, it's done.", ()),
    ],
)
def test_names_in(text: str, names: tuple[str, ...]) -> None:
    """Files, paths, hosts, addresses and quotations are found in both languages; other slashes and dots not."""
    assert names_in(text) == names


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("1,234 lines, 12% of 3.5k", [(1234, "lines"), (12, "%"), (3.5, "KB")]),
        ("about 1.2 million; twenty-one files; both", [(1_200_000, ""), (21, ""), (2, "")]),
        ("三个文件，共一百二十行，1.2万条", [(3, ""), (120, "lines"), (12_000, "")]),
        ("took 1m30.5s on 2024-01-02 at 10:00 with v1.2.3", [(90.5, "s")]),
        ("-3 °C, $5, UTF-8, b2, one of them", [(-3, "°C"), (5, "$")]),
    ],
)
def test_quantities(text: str, found: list[tuple[float, str]]) -> None:
    """Figures are read with separators, units, words and Chinese numerals; versions, dates and names are none."""
    assert [(each.value, each.unit) for each in quantities(text)] == found


@pytest.mark.parametrize(
    ("numeral", "value"), [("三百二十", 320), ("一万二千", 12_000), ("两亿", 2e8), ("十", 10), ("万", None)]
)
def test_han_numerals(numeral: str, value: float | None) -> None:
    """Chinese numerals up to 亿 have their value."""
    assert han_value(numeral) == value


def test_steps_know_whether_their_failure_shows() -> None:
    """`;`, `||`, pipes and background hide a failure; `&&`, set -e and pipefail do not."""
    exposed = {
        "a; echo ok": [False, True],
        "a && b": [True, True],
        "a || true": [False, True],
        "a | b": [False, True],
        "set -o pipefail; a | b": [True, True],
        "set -e; a; b": [True, True],
        "a &": [False],
        "! a": [False],
        "bash -c 'a; b'": [False, True],
        "f() { a; }; b": [False, True],
    }
    for command, expected in exposed.items():
        assert [step.exposed for step in steps_of(command)] == expected, command


@pytest.mark.parametrize(
    ("command", "effect", "able"),
    [
        ("sudo -u u timeout 5 rm -f x", Effect.DELETE, True),
        ("find . -name '*.o' -delete", Effect.DELETE, True),
        ("find . -name '*.o' -exec rm {} +", Effect.DELETE, True),
        ("find . -name '*.o'", Effect.DELETE, False),
        ("git clean -nd", Effect.DELETE, False),
        ("rsync --dry-run a b", Effect.COPY, False),
        ("tar tf a.tar", Effect.EXTRACT, False),
        ("gzip -d a.gz", Effect.EXTRACT, True),
        ("curl -X DELETE https://e.example/x", Effect.DELETE, True),
        ("curl -o x https://e.example/x", Effect.DOWNLOAD, True),
        ("curl https://e.example/x", Effect.DOWNLOAD, False),
        ("python3 -m pytest", Effect.TEST, True),
        ('python3 -c \'open("a", "w").write("x")\'', Effect.CREATE, True),
        ("python3 -c 'print(1)'", Effect.CREATE, False),
        ("./deploy.sh", Effect.DEPLOY, True),
        ("./frobnicate", Effect.TEST, False),
        ("service nginx restart", Effect.START, True),
        ("service", Effect.START, False),
        ("brew services start redis", Effect.START, True),
        ("crontab -l", Effect.SCHEDULE, False),
        ("ruff check src", Effect.EDIT, False),
        ("git branch", Effect.CREATE, False),
        ("git stash", Effect.RESTORE, True),
        ("git push heroku main", Effect.DEPLOY, True),
        ("apt-get install -y curl", Effect.INSTALL, True),
        ("make", Effect.BUILD, True),
        ("npm run deploy", Effect.TEST, False),
        ("sort -o a a", Effect.EDIT, True),
        ("sed -i s/a/b/ f", Effect.EDIT, True),
        ("uv run pytest", Effect.TEST, True),
        ("env A=1 npx jest", Effect.TEST, True),
    ],
)
def test_effects(command: str, effect: Effect, able: bool) -> None:
    """What a command can have done is read from its programs, subcommands and options."""
    assert any(effect in effects_of(step) for step in steps_of(command)) is able


@pytest.mark.parametrize(
    ("call", "standing"),
    [
        (shell("grep x f", "", 1), Standing.NEGATIVE),
        (shell("grep x f", "", 2, error_output="grep: f: No such file or directory"), Standing.FAILED),
        (shell("make", "", -9), Standing.INCOMPLETE),
        (shell("make", status=CallStatus.REFUSED), Standing.REFUSED),
        (shell("rm a", dropped=("a",)), Standing.WITHHELD),
        (shell("make 2>/dev/null; true"), Standing.UNKNOWN),
        (shell("./copy.sh", "copied 3/5"), Standing.PARTIAL),
        (shell('cp a b; echo "rc=$?"', "rc=1"), Standing.FAILED),
        (shell("mv a b || echo failed", "failed"), Standing.FAILED),
        (shell("cat log", "ERROR: everything"), Standing.DONE),
    ],
)
def test_standing(call: ToolCall, standing: Standing) -> None:
    """How far a call can be relied on follows from status, exit code, what hid it, and its own words."""
    assert views_of([call])[0].standing is standing


def test_primary_calls_are_those_that_acted() -> None:
    """Looking is not doing; when nothing acted, looking was the work."""
    look, act = shell("ls"), shell("rm a")
    assert primary_calls([look, act]) == (act,)
    assert primary_calls([look]) == (look,)


def test_grounded_numbers_names_each_figure() -> None:
    """Every figure comes with whether something that was read contains it."""
    found = grounded_numbers("a.py has 120 lines and 35 comments.", [shell("wc -l a.py", "120 a.py\n")])
    assert found == (("120 lines", True), ("35", False))


def test_an_output_as_it_stands_is_supported() -> None:
    """A tool's output, given as the answer to a question, is a quotation and no claim of the runtime's."""
    text = "Dear Ann, the meeting was moved to Friday.\nBob has deleted 300 files."
    assert assess(text, [shell("cat mail.txt", text)], intent="What does mail.txt say?").supported


def test_findings_cite_the_tools_at_fault() -> None:
    """A contradiction names the identities of the call that failed and whether the world was to blame."""
    call = shell("cp a b", "", 1, error_output="cp: b: Permission denied")
    finding = assess("a was copied to b.", [call], intent="copy a to b").findings[0]
    assert finding.contradicts
    assert finding.identities == ("shell",)
    assert finding.failure_class == "environmental"


@settings(deadline=None, max_examples=60)
@given(claim=st.text(max_size=200), command=st.text(max_size=120), output=st.text(max_size=200))
def test_any_text_is_judged(claim: str, command: str, output: str) -> None:
    """No claim, command or output makes the rules raise."""
    assess(claim, [shell(command, output)], intent="")


@pytest.mark.parametrize("claim", ["x" * 20_000, "1," * 10_000, "a-" * 10_000, "a. " * 4_000, "了" * 10_000])
def test_endless_claims_are_read_within_bounds(claim: str) -> None:
    """A claim without end is cut, not read for ever."""
    assess(claim, [shell("cat f", "1,2,3\n" * 400)], intent="")
