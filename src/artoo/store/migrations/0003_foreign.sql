-- Foreign agents' side of the board: whom letters can go to, what they handed in, where they are told of it.

CREATE TABLE foreign_agents (name text PRIMARY KEY);

CREATE TABLE foreign_tasks (
    board_task text PRIMARY KEY REFERENCES tasks (id),
    peer text NOT NULL,
    agent text NOT NULL,
    message text NOT NULL,
    context text NOT NULL,
    trust text NOT NULL,
    calls bigint,
    tokens bigint,
    seconds double precision,
    money double precision,
    at_us bigint NOT NULL,
    UNIQUE (peer, agent, message)
);
COMMENT ON TABLE foreign_tasks IS 'What the operator''s policy said about a task when a foreign agent handed it in.';

CREATE TABLE foreign_pushes (
    board_task text NOT NULL REFERENCES foreign_tasks (board_task),
    id text NOT NULL,
    told bigint NOT NULL,
    target text NOT NULL,
    PRIMARY KEY (board_task, id)
);

CREATE TABLE foreign_letters (
    mail text PRIMARY KEY,
    task text NOT NULL,
    at_us bigint NOT NULL
);
