"""The configuration: what it accepts, how it names mistakes, and what stands over what."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from artoo.contracts.errors import ConfigurationError
from artoo.control.hyperparameters import Hyperparameters
from artoo.runtime.app.home import default_home
from artoo.runtime.config.env_overrides import variables
from artoo.runtime.config.loader import load_config, read_config
from artoo.runtime.config.model import Config
from artoo.runtime.config.template import template_text
from artoo.settings.text_file import LARGEST_FILE

SEED = """\
runtime:
  memory:
    procedural:
      path: ./config/agent_identity.yaml
      immutable: true
    semantic:
      max_curated_chars: 15000
      observation_buffer_limit: 50
      dream_cycle_interval_hours: 24
    episodic:
      session_retention_days: 90
      activity_db: sqlite://./data/agent_activities.db
  communication:
    a2a_protocol:
      default_mode: async
      sync_timeout_seconds: 30
      mailbox_partitions: [outbox, inbox, archive]
    attention_controller:
      priority_levels: [critical, standard, background]
  governance:
    fsm:
      states: [pending, in_progress, blocked, review, completed, failed, rejected, cancelled, archived]
    trust_levels:
      probation: {review_threshold: all, can_approve: false}
      standard: {review_threshold: complex, can_approve: false}
      trusted: {review_threshold: critical, can_approve: false}
      senior: {review_threshold: none, can_approve: true}
  autonomy:
    heartbeat:
      interval_seconds: 120
      mailbox_check: true
      task_scan: true
      patrol_routine: ./config/heartbeat_patrol.md
"""


def read(tmp_path: Path, text: str, environ: dict[str, str] | None = None) -> Config:
    """The configuration that a file with this text makes."""
    (tmp_path / "config.yaml").write_text(text, encoding="utf-8")
    return load_config({"ARTOO_HOME": str(tmp_path), **(environ or {})})


def same(one: Config, other: Config) -> bool:
    """True when all settings are equal, wherever the homes are."""
    return one.model_dump() == other.model_dump()


def complaint(tmp_path: Path, text: str, environ: dict[str, str] | None = None) -> str:
    """What is said about a file with this text, without the path of the file."""
    with pytest.raises(ConfigurationError) as caught:
        read(tmp_path, text, environ)
    return str(caught.value).replace(str(tmp_path / "config.yaml"), "FILE")


def test_the_template_shows_the_defaults_of_settings_and_control_law(tmp_path: Path) -> None:
    """What `artoo config init` writes is the default configuration, with every number of the control law."""
    template = template_text()
    assert same(read(tmp_path, template), Config())
    assert "<" not in template
    assert Config().control.hyperparameters() == Hyperparameters()
    # Without these, an empty template would be equal too.
    shown = {name for name, route in variables().items() if f"\n  {route[-1]}: " in template}
    named = {f"ARTOO_CONTROL__{field.rstrip('_').upper()}" for field in Hyperparameters.__dataclass_fields__}
    assert named - {"ARTOO_CONTROL__TIME_BUDGET_MS"} <= shown


def test_the_seeds_template_works_as_it_is(tmp_path: Path) -> None:
    """The seed's tree loads unchanged, and is the default."""
    assert same(read(tmp_path, SEED), Config())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("control:\n  delat: 0.2\n", "FILE:2:3: control.delat is not a setting; did you mean delta?"),
        ("contrl: {}\n", "FILE:1:1: contrl is not a setting; did you mean control?"),
        ("control: {theta: 3}\n", "FILE:1:18: control.theta is 3, but must be at most 1"),
        ("control:\n  alpha: yes\n", "FILE:2:10: control.alpha is True, but must be a number"),
        ("limits: {calls: 2.5}\n", "FILE:1:17: limits.calls is 2.5, but must be a whole number"),
        ("limits: {calls: 0}\n", "FILE:1:17: limits.calls is 0, but must be at least 1"),
        (
            "limits: {money: .inf}\n",
            "FILE:1:17: limits.money is inf, but must be a finite number",
        ),
        (
            "control: {gradient: papper}\n",
            "FILE:1:21: control.gradient is 'papper', but must be 'equal_cost' or 'paper'; did you mean paper?",
        ),
        (
            "control: {w1: 0.9}\n",
            "FILE:1:10: control w1 + w2 must be at most 1, or Ω leaves [0, 1]",
        ),
        ("limits: 5\n", "FILE:1:9: limits is 5, but must be a section of the form `name: value`"),
        ("memory: {enabled: maybe}\n", "FILE:1:19: memory.enabled is 'maybe', but must be true or false"),
        (
            "allow:\n  - overwrite out/*.csv\n  - everything\n",
            "FILE:2:3: allow 'everything' does not begin with a kind of act",
        ),
        ("limits:\n  calls: 3\n  calls: 4\n", "FILE:3:3: limits.calls stands here a second time (first in line 2)"),
        (
            "when: 2026-01-01\n",
            "FILE:1:1: when is not a setting; the configuration knows: models, embedded, control",
        ),
        (
            "runtime: {autonomy: {heartbeat: {interval_seconds: 10}}}\n",
            "FILE:1:52: runtime.autonomy.heartbeat.interval_seconds is 10, but must be from 60 to 300 seconds:"
            " shorter pulses storm the model, longer ones leave mail lying",
        ),
        (
            "runtime: {governance: {fsm: {states: [pending, review]}}}\n",
            "FILE:1:38: runtime.governance.fsm.states must name exactly these states: pending, in_progress",
        ),
        (
            "runtime: {communication: {attention_controller: {priority_levels: [standard, critical]}}}\n",
            "FILE:1:67: runtime.communication.attention_controller.priority_levels must be, in this order: crit",
        ),
        ("- a\n- b\n", "FILE:1:1: must be settings of the form `name: value`"),
        ("a: [1\nb: 2\n", "FILE:2:2: not valid YAML: expected ',' or ']'"),
        ("a: *nothing\n", "FILE:1:4: not valid YAML: found undefined alias"),
        ("? [a, b]\n: 1\n", "FILE:1:3: a name of a setting must be a word"),
        (
            "workspace: !!python/object:os.system x\n",
            "FILE:1:12: workspace has a value of a kind that settings do not",
        ),
        ("a: \x07\n", "FILE:1: a character that YAML does not allow"),
    ],
)
def test_each_mistake_is_named_where_it_stands(text: str, said: str, tmp_path: Path) -> None:
    """File, line, column, what is wrong, and what was probably meant."""
    assert complaint(tmp_path, text).startswith(said)


def test_all_mistakes_are_named_at_once(tmp_path: Path) -> None:
    """Problems of the file come in the order of its lines, then those of the environment."""
    text = "limits: {money: 0}\nzzz: 1\ncontrol:\n  delat: 1\n"
    said = complaint(tmp_path, text, {"ARTOO_CONTROL__RHOO": "1", "ARTOO_LIMITS__CALLS": "few"})
    heads = [line.split(": ")[0].strip() for line in said.splitlines()]
    assert heads == [
        "the configuration has 5 problems:",
        "FILE:1:17",
        "FILE:2:1",
        "FILE:4:3",
        "environment variable ARTOO_CONTROL__RHOO",
        "environment variable ARTOO_LIMITS__CALLS",
    ]
    assert "did you mean ARTOO_CONTROL__RHO?" in said


@pytest.mark.parametrize(
    "text",
    [
        "models: {brain: {api_key: sk-secret}}\n",
        "models: {brain: {api_key_env: sk-secret}}\n",
        "models: {brain: {base_url: 'https://user:sk-secret@host/v1'}}\n",
    ],
)
def test_secrets_are_refused_and_not_repeated(text: str, tmp_path: Path) -> None:
    """A key in the file is a mistake, and the message about it does not hold it."""
    said = complaint(tmp_path, text)
    assert "sk-secret" not in said
    assert "FILE:1:" in said


def test_what_is_no_configuration_is_refused(tmp_path: Path) -> None:
    """A huge file, one that unfolds without end, one that is no text, a directory, a dead link: each is said."""
    assert "larger than" in complaint(tmp_path, "#" * (LARGEST_FILE + 1))
    bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]\n"
        for before, name in zip("abcde", "bcdef", strict=True)
    )
    assert "too large or too deep" in complaint(tmp_path, bomb)
    assert "too large or too deep" in complaint(tmp_path, "{a: " * 3_000)
    (tmp_path / "config.yaml").write_bytes(b"a: 1\nb: \xff\n")
    with pytest.raises(ConfigurationError, match=r"config\.yaml:2: not UTF-8 text"):
        load_config({"ARTOO_HOME": str(tmp_path)})
    with pytest.raises(ConfigurationError, match="cannot be read"):
        read_config(tmp_path, {})
    (tmp_path / "config.yaml").unlink()
    (tmp_path / "config.yaml").symlink_to("/not/mounted.yaml")
    with pytest.raises(ConfigurationError, match=r"config\.yaml leads to /not/mounted\.yaml, and nothing is there"):
        load_config({"ARTOO_HOME": str(tmp_path)})


def test_a_removed_setting_is_left_out_with_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """An update does not stop what worked: settings of earlier versions are named and not read."""
    environ = {"ARTOO_LIMITS__SUBTASK_SECONDS": "61"}
    config = read(tmp_path, "limits:\n  steps: 8\n  tool_seconds: 60\n  calls: 7\n", environ)
    assert config.limits.calls == 7
    said = caplog.messages
    assert len(said) == 3
    assert any(":2:3: limits.steps (8) is not read any more: an attempt ends" in line for line in said)
    assert any(":3:3: limits.tool_seconds (60) is not read any more" in line for line in said)
    assert any(line.startswith("environment variable ARTOO_LIMITS__SUBTASK_SECONDS: is not read") for line in said)


def test_the_environment_stands_over_the_file(tmp_path: Path) -> None:
    """Every setting has a variable; an empty one restores the default; lists are lines."""
    config = read(
        tmp_path,
        "control: {delta: 0.2, lambda: 0.1}\nworkspace: /file\nlimits: {calls: 3}\n",
        {
            "ARTOO_CONTROL__DELTA": "0.05",
            "ARTOO_WORKSPACE": "/variable",
            "ARTOO_LIMITS__CALLS": "",
            "ARTOO_MEMORY__ENABLED": "false",
            "ARTOO_ALLOW": "overwrite a b\ndelete c",
        },
    )
    assert (config.control.delta, config.control.lambda_) == (0.05, 0.1)
    assert config.workspace_path == Path("/variable")
    assert config.limits.calls is None
    assert not config.memory.enabled
    assert config.allow == ("overwrite a b", "delete c")
    assert variables()["ARTOO_CONTROL__LAMBDA"] == ("control", "lambda")


def test_the_home_follows_its_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`ARTOO_HOME` moves everything that is artoo's own; relative places start there."""
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_home({}) == tmp_path / ".artoo"
    assert default_home({"ARTOO_HOME": "~/elsewhere"}) == tmp_path / "elsewhere"
    config = read(tmp_path, "memory: {path: /var/m}\n")
    assert (config.home, config.memory_path) == (tmp_path, Path("/var/m"))
    assert config.workspace_path == tmp_path / "artoo_workspace"


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    """Whatever stands in the file, the answer is a configuration or a ConfigurationError."""
    from artoo.settings.places import Places
    from artoo.settings.problems import problems_of
    from artoo.settings.yaml_file import parse

    try:
        tree, places = parse(text, Path("config.yaml"))
    except ConfigurationError:
        return
    assert isinstance(places, Places)
    for problem in problems_of(tree, places, Config):
        assert str(problem).startswith("config.yaml:")
