-- What each machine has logged, for readers anywhere, and what vouches for it.

CREATE TABLE stream_pieces (
    machine text NOT NULL,
    file text NOT NULL,
    start_byte bigint NOT NULL CHECK (start_byte >= 0),
    end_byte bigint NOT NULL CHECK (end_byte > start_byte),
    task text,
    content bytea NOT NULL,
    kept_us bigint NOT NULL DEFAULT now_us(),
    PRIMARY KEY (machine, file, start_byte)
);
COMMENT ON TABLE stream_pieces IS
    'The files of task logs and of the audit as a machine wrote them, in pieces; file: its path below the home.';
CREATE INDEX stream_tasks ON stream_pieces (task text_pattern_ops) WHERE task IS NOT NULL;

CREATE TABLE audit_anchors (
    machine text NOT NULL,
    number bigint NOT NULL CHECK (number > 0),
    hash text NOT NULL,
    chain text NOT NULL,
    event text NOT NULL,
    count bigint NOT NULL,
    head text NOT NULL,
    kept_us bigint NOT NULL DEFAULT now_us(),
    PRIMARY KEY (machine, number)
);
COMMENT ON TABLE audit_anchors IS
    'Append-only. The lines of every machine''s anchors.jsonl: where its audit chains stood, each with its hash.';

CREATE TABLE audit_witnesses (
    witness text NOT NULL,
    machine text NOT NULL,
    number bigint NOT NULL,
    hash text NOT NULL,
    chain text NOT NULL,
    kept_us bigint NOT NULL DEFAULT now_us(),
    PRIMARY KEY (witness, machine, number)
);
COMMENT ON TABLE audit_witnesses IS
    'Append-only. Which machine has put which anchor of another on record, in which chain of its own.';
