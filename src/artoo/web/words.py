"""Everything that the page itself says, in English and Chinese. What models and files say stays as it is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Words:
    """Sentences and labels of one language. `{…}` is filled in by `format`."""

    language: str
    now: str
    tasks: str
    team: str
    memory: str
    audit: str
    cost: str
    skip: str
    other_language: str
    # home
    ask: str
    ask_hint: str
    project: str
    apply_mode: str
    apply_new: str
    apply_edits: str
    apply_ask: str
    start: str
    waits: str
    nothing_yet: str
    nothing_yet_how: str
    in_terminal: str
    request: str
    state: str
    when: str
    took: str
    changes_wait: str
    older: str
    # states
    running: str
    not_ended: str
    accept: str
    success: str
    abandon: str
    interrupted: str
    # a task
    stop: str
    stopping: str
    answer: str
    facts: str
    unmet: str
    open_criteria: str
    next_moves: str
    how_it_thinks: str
    fast_loop: str
    medium_loop: str
    slow_loop: str
    no_directive: str
    drawing_of: str
    turn: str
    turn_none: str
    numbers: str
    plane: str
    plane_how: str
    region_world: str
    region_approach: str
    region_success: str
    trajectory: str
    term_d: str
    term_p: str
    term_omega: str
    term_l: str
    term_grad: str
    round: str
    first_plan: str
    differs: str
    law_said: str
    why_d: str
    why_d_none: str
    why_p_none: str
    why_p: str
    why_omega: str
    why_first: str
    why_better: str
    why_worse: str
    why_flat: str
    blocked: str
    kept: str
    failed_first: str
    correction: str
    attempt: str
    criteria: str
    refused_plan: str
    table: str
    # timeline
    timeline: str
    events: str
    only_important: str
    everything: str
    folded: str
    timeline_how: str
    event: str
    close: str
    earlier: str
    later: str
    details: str
    missing: str
    offline: str
    # questions
    question: str
    once: str
    for_task: str
    no: str
    keep: str
    discard: str
    source: str
    answered: str
    answered_elsewhere: str
    gone_out: str
    not_open: str
    # difference
    difference: str
    apply_all: str
    apply_chosen: str
    choose: str
    nothing_waits: str
    conflicts: str
    changed_meanwhile: str
    undo: str
    undo_how: str
    undone: str
    left_alone: str
    applied: str
    pending: str
    waits_until: str
    not_a_text: str
    cut_off: str
    what_if: str
    what_if_how: str
    recompute: str
    then: str
    would_be: str
    nobody_knows: str
    # team
    board: str
    agents: str
    letters: str
    no_agents: str
    no_tasks: str
    no_letters: str
    who: str
    trust: str
    last_pulse: str
    unread: str
    write: str
    to: str
    send: str
    add_task: str
    serving: str
    not_serving: str
    approve: str
    reject: str
    why: str
    # memory
    pyramid: str
    thinking_level: str
    rules_level: str
    knowledge_level: str
    megram_level: str
    pairs: str
    prefer: str
    avoid: str
    caution: str
    attention: str
    decision: str
    over_time: str
    dreams: str
    no_memory: str
    proposals: str
    # audit
    report: str
    verify: str
    whole: str
    not_whole: str
    nothing_audited: str
    findings: str
    none_found: str
    chains: str
    # cost
    calls: str
    tokens: str
    money: str
    per_day: str
    latest: str
    total: str
    no_cost: str
    # errors
    not_found: str
    refused: str
    back: str
    roles: tuple[tuple[str, str], ...]
    directives: tuple[tuple[str, str], ...]
    consents: tuple[tuple[str, str], ...]
    classes: tuple[tuple[str, str], ...]

    def role(self, name: str) -> str:
        """A role for people."""
        return dict(self.roles).get(name, name)

    def directive(self, name: str) -> str:
        """What a macro-state means for the next round."""
        return dict(self.directives).get(name, name)

    def consent(self, name: str) -> str:
        """An answer for people."""
        return dict(self.consents).get(name, name)

    def change(self, name: str) -> str:
        """A class of changes for people."""
        return dict(self.classes).get(name, name)
