-- The tables of the embedded books. A step that has shipped is never edited: a change is a new file.
-- Times named `_us` are microseconds since 1970: of the wall clock where they end in `at_us`, of the steady clock
-- (`monotonic_clock.py`) in `queued_us`, `since_us` and `lease_us`, by which things wait.
-- Long texts stand last in their tables, because SQLite reads a row from its beginning.
-- The triggers keep `transitions` and `task_changes` append-only.

CREATE TABLE tasks (
    id TEXT PRIMARY KEY,
    state TEXT NOT NULL CHECK (state IN ('pending', 'in_progress', 'blocked', 'review', 'completed', 'failed',
                                         'rejected', 'cancelled', 'archived')),
    priority TEXT NOT NULL CHECK (priority IN ('critical', 'standard', 'background')),
    complexity TEXT CHECK (complexity IN ('simple', 'complex', 'critical')),
    assignee TEXT,
    reviewer TEXT,
    creator TEXT NOT NULL,
    open_to_all INTEGER NOT NULL,
    project TEXT NOT NULL,
    run TEXT,
    submission INTEGER NOT NULL DEFAULT 0,
    resumable INTEGER NOT NULL DEFAULT 0,
    queue INTEGER NOT NULL,
    queued_us INTEGER NOT NULL,
    interruptions INTEGER NOT NULL DEFAULT 0,
    claim TEXT,
    claimant TEXT,
    holder TEXT,
    lease_us INTEGER,
    created_at_us INTEGER NOT NULL,
    updated_at_us INTEGER NOT NULL,
    text TEXT NOT NULL,
    notes TEXT NOT NULL DEFAULT '[]',
    summary TEXT NOT NULL DEFAULT ''
) STRICT;

CREATE TABLE transitions (
    position INTEGER PRIMARY KEY,
    event TEXT NOT NULL UNIQUE,
    board_task TEXT NOT NULL REFERENCES tasks (id),
    before TEXT,
    after TEXT NOT NULL,
    actor TEXT NOT NULL CHECK (actor <> ''),
    reason TEXT NOT NULL,
    by_policy INTEGER NOT NULL,
    at_us INTEGER NOT NULL
) STRICT;

CREATE TABLE task_changes (
    position INTEGER PRIMARY KEY,
    event TEXT NOT NULL UNIQUE,
    board_task TEXT NOT NULL REFERENCES tasks (id),
    change TEXT NOT NULL,
    actor TEXT NOT NULL CHECK (actor <> ''),
    detail TEXT NOT NULL,
    at_us INTEGER NOT NULL
) STRICT;

CREATE TABLE mails (
    position INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    sender TEXT NOT NULL,
    recipient TEXT NOT NULL,
    priority TEXT NOT NULL CHECK (priority IN ('critical', 'standard', 'background')),
    requires_reply INTEGER NOT NULL,
    in_reply_to TEXT,
    sent_at_us INTEGER NOT NULL,
    partition TEXT NOT NULL CHECK (partition IN ('outbox', 'inbox', 'archive')),
    queued_us INTEGER NOT NULL,
    archived_at_us INTEGER,
    note TEXT NOT NULL DEFAULT '',
    attempts INTEGER NOT NULL DEFAULT 0,
    claim TEXT,
    holder TEXT,
    lease_us INTEGER,
    text TEXT NOT NULL
) STRICT;

CREATE TABLE waits (
    mail TEXT PRIMARY KEY REFERENCES mails (id),
    waiting TEXT NOT NULL,
    recipient TEXT NOT NULL,
    holder TEXT NOT NULL,
    until_us INTEGER NOT NULL,
    reply TEXT REFERENCES mails (id)
) STRICT;

CREATE TABLE agents (
    name TEXT PRIMARY KEY,
    trust TEXT NOT NULL CHECK (trust IN ('probation', 'standard', 'trusted', 'senior')),
    paused INTEGER NOT NULL DEFAULT 0,
    stopped TEXT NOT NULL DEFAULT '',
    identity_sha256 TEXT,
    created_at_us INTEGER NOT NULL,
    updated_at_us INTEGER NOT NULL
) STRICT;

CREATE TABLE pulses (
    position INTEGER PRIMARY KEY AUTOINCREMENT,
    agent TEXT NOT NULL,
    number INTEGER NOT NULL,
    due_at_us INTEGER NOT NULL,
    last_due_at_us INTEGER NOT NULL,
    at_us INTEGER NOT NULL,
    outcome TEXT NOT NULL CHECK (outcome IN ('run', 'idle', 'skipped', 'missed')),
    why TEXT NOT NULL DEFAULT '',
    count INTEGER NOT NULL DEFAULT 1,
    llm_calls INTEGER NOT NULL DEFAULT 0,
    UNIQUE (agent, number)
) STRICT;

CREATE TABLE activity (
    position INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    agent TEXT NOT NULL,
    kind TEXT NOT NULL,
    board_task TEXT,
    mail TEXT,
    run TEXT,
    summary TEXT NOT NULL,
    detail TEXT NOT NULL DEFAULT '{}',
    consolidated INTEGER NOT NULL DEFAULT 0,
    at_us INTEGER NOT NULL
) STRICT;

CREATE TABLE observations (
    position INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    agent TEXT NOT NULL,
    text TEXT NOT NULL,
    pattern TEXT NOT NULL DEFAULT '',
    activity TEXT,
    counted INTEGER NOT NULL DEFAULT 0,
    at_us INTEGER NOT NULL
) STRICT;

CREATE TABLE events (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT,
    role TEXT NOT NULL,
    subject TEXT NOT NULL,
    kind TEXT NOT NULL,
    payload TEXT NOT NULL,
    holder TEXT NOT NULL,
    since_us INTEGER NOT NULL
) STRICT;

CREATE TABLE patterns (
    agent TEXT NOT NULL,
    id TEXT NOT NULL,
    pattern TEXT NOT NULL,
    text TEXT NOT NULL,
    wording TEXT NOT NULL DEFAULT '',
    seen INTEGER NOT NULL,
    promoted INTEGER NOT NULL DEFAULT 0,
    first_at_us INTEGER NOT NULL,
    last_at_us INTEGER NOT NULL,
    PRIMARY KEY (agent, id)
) STRICT;

CREATE TABLE dreams (
    position INTEGER PRIMARY KEY AUTOINCREMENT,
    agent TEXT NOT NULL,
    report TEXT NOT NULL,
    pending TEXT,
    at_us INTEGER NOT NULL
) STRICT;

CREATE TABLE patrols (
    agent TEXT NOT NULL,
    item TEXT NOT NULL,
    last_at_us INTEGER,
    seen TEXT NOT NULL DEFAULT '',
    open_key TEXT,
    PRIMARY KEY (agent, item)
) STRICT;

CREATE TABLE arrivals (name TEXT PRIMARY KEY, count INTEGER NOT NULL) STRICT;

CREATE TABLE marks (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;

CREATE TABLE steady (one INTEGER PRIMARY KEY CHECK (one = 1), last_us INTEGER NOT NULL, ahead_us INTEGER NOT NULL)
    STRICT;

CREATE TABLE clock_jumps (position INTEGER PRIMARY KEY AUTOINCREMENT, at_us INTEGER NOT NULL, back_us INTEGER NOT
    NULL) STRICT;

INSERT INTO steady VALUES (1, 0, 0);

INSERT INTO marks VALUES ('store', lower(hex(randomblob(8)))), ('number', '0');

CREATE INDEX tasks_by_queue ON tasks (state, priority, queue);

CREATE INDEX tasks_held ON tasks (holder) WHERE holder IS NOT NULL;

CREATE INDEX transitions_of ON transitions (board_task, position);

CREATE INDEX task_changes_of ON task_changes (board_task, position);

CREATE INDEX mails_by_recipient ON mails (recipient, partition, position);

CREATE INDEX mails_by_sender ON mails (sender, partition, position);

CREATE INDEX mails_by_age ON mails (archived_at_us) WHERE archived_at_us IS NOT NULL;

CREATE INDEX mails_held ON mails (holder) WHERE holder IS NOT NULL;

CREATE INDEX replies_to ON mails (in_reply_to) WHERE in_reply_to IS NOT NULL;

CREATE INDEX pulses_of ON pulses (agent, position);

CREATE INDEX dreams_of ON dreams (agent, position);

CREATE INDEX activity_of ON activity (agent, position);

CREATE INDEX activity_by_age ON activity (at_us);

CREATE INDEX observations_of ON observations (agent, position);

CREATE TRIGGER transitions_never_update BEFORE UPDATE ON transitions
BEGIN SELECT RAISE(ABORT, 'transitions are kept as they were written'); END;

CREATE TRIGGER transitions_never_delete BEFORE DELETE ON transitions
BEGIN SELECT RAISE(ABORT, 'transitions are kept as they were written'); END;

CREATE TRIGGER task_changes_never_update BEFORE UPDATE ON task_changes
BEGIN SELECT RAISE(ABORT, 'task_changes are kept as they were written'); END;

CREATE TRIGGER task_changes_never_delete BEFORE DELETE ON task_changes
BEGIN SELECT RAISE(ABORT, 'task_changes are kept as they were written'); END;
