-- What several machines need: claims counted by `epoch`, seats, machines.

ALTER TABLE tasks ADD COLUMN epoch INTEGER NOT NULL DEFAULT 0;

ALTER TABLE mails ADD COLUMN epoch INTEGER NOT NULL DEFAULT 0;

ALTER TABLE transitions ADD COLUMN epoch INTEGER NOT NULL DEFAULT 0;

ALTER TABLE tasks ADD COLUMN made_on TEXT NOT NULL DEFAULT '';

CREATE TABLE seats (
    agent TEXT PRIMARY KEY,
    holder TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    lease_us INTEGER NOT NULL
) STRICT;

CREATE TABLE machines (
    id TEXT PRIMARY KEY CHECK (id <> ''),
    name TEXT NOT NULL CHECK (name <> ''),
    program TEXT NOT NULL,
    projects TEXT NOT NULL DEFAULT '[]',
    first_seen_us INTEGER NOT NULL,
    last_seen_us INTEGER NOT NULL
) STRICT;
