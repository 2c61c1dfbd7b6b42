-- A foreign agent's task may have several messages.

ALTER TABLE foreign_tasks ADD COLUMN heard bigint;
COMMENT ON COLUMN foreign_tasks.heard IS 'How many characters of the task''s text the run that works on it was given.';

CREATE TABLE foreign_messages (
    peer text NOT NULL,
    agent text NOT NULL,
    message text NOT NULL,
    board_task text NOT NULL REFERENCES foreign_tasks (board_task),
    number bigint NOT NULL,
    at_us bigint NOT NULL,
    text text NOT NULL,
    PRIMARY KEY (peer, agent, message)
);
CREATE UNIQUE INDEX foreign_messages_of ON foreign_messages (board_task, number);
CREATE INDEX foreign_messages_by_peer ON foreign_messages (peer, at_us);

INSERT INTO foreign_messages
SELECT f.peer, f.agent, f.message, f.board_task, 0, f.at_us, t.text
FROM foreign_tasks f JOIN tasks t ON t.id = f.board_task;
