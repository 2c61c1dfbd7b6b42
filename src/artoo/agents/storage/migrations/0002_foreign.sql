-- Tasks that foreign agents handed in, where they want to be told, and letters that went out to them.

CREATE TABLE foreign_agents (name TEXT PRIMARY KEY) STRICT;

CREATE TABLE foreign_tasks (
    board_task TEXT PRIMARY KEY REFERENCES tasks (id),
    peer TEXT NOT NULL,
    agent TEXT NOT NULL,
    message TEXT NOT NULL,
    context TEXT NOT NULL,
    trust TEXT NOT NULL,
    calls INTEGER,
    tokens INTEGER,
    seconds REAL,
    money REAL,
    at_us INTEGER NOT NULL,
    UNIQUE (peer, agent, message)
) STRICT;

CREATE TABLE foreign_pushes (
    board_task TEXT NOT NULL REFERENCES foreign_tasks (board_task),
    id TEXT NOT NULL,
    told INTEGER NOT NULL,
    target TEXT NOT NULL,
    PRIMARY KEY (board_task, id)
) STRICT;

CREATE TABLE foreign_letters (
    mail TEXT PRIMARY KEY,
    task TEXT NOT NULL,
    at_us INTEGER NOT NULL
) STRICT;

CREATE INDEX foreign_tasks_of ON foreign_tasks (peer, at_us);
