-- A foreign agent's task may have several messages; `heard` is how many characters of the task's text the run
-- that works on it was given.

ALTER TABLE foreign_tasks ADD COLUMN heard INTEGER;

CREATE TABLE foreign_messages (
    peer TEXT NOT NULL,
    agent TEXT NOT NULL,
    message TEXT NOT NULL,
    board_task TEXT NOT NULL REFERENCES foreign_tasks (board_task),
    number INTEGER NOT NULL,
    at_us INTEGER NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (peer, agent, message)
) STRICT;

CREATE UNIQUE INDEX foreign_messages_of ON foreign_messages (board_task, number);

CREATE INDEX foreign_messages_by_peer ON foreign_messages (peer, at_us);

INSERT INTO foreign_messages
SELECT f.peer, f.agent, f.message, f.board_task, 0, f.at_us, t.text
FROM foreign_tasks f JOIN tasks t ON t.id = f.board_task;
