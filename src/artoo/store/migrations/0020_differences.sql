-- What submissions change, on its way to the machines where it is reviewed and applied.

CREATE TABLE differences (
    task text NOT NULL REFERENCES tasks (id),
    submission integer NOT NULL CHECK (submission > 0),
    machine text NOT NULL,
    epoch bigint NOT NULL,
    whole boolean NOT NULL DEFAULT FALSE,
    stays text NOT NULL DEFAULT '',
    size bigint NOT NULL DEFAULT 0,
    sha256 text NOT NULL DEFAULT '',
    dossier text NOT NULL DEFAULT '',
    review text NOT NULL DEFAULT '',
    applying text NOT NULL DEFAULT '',
    made_us bigint NOT NULL DEFAULT now_us(),
    PRIMARY KEY (task, submission)
);
COMMENT ON TABLE differences IS 'The files of submissions, as far as they are not settled. Who reads this reads them.';
COMMENT ON COLUMN differences.machine IS 'The machine that made it.';
COMMENT ON COLUMN differences.whole IS 'Whether all pieces are there.';
COMMENT ON COLUMN differences.stays IS 'Why it stays on the machine that made it; empty: it does not.';
COMMENT ON COLUMN differences.sha256 IS 'Of the whole parcel.';
COMMENT ON COLUMN differences.dossier IS 'The evidence, as JSON.';
COMMENT ON COLUMN differences.review IS 'How it looked on the machine that made it, as JSON, for machines without the project.';
COMMENT ON COLUMN differences.applying IS 'The one machine that may apply it.';
CREATE INDEX differences_of_machine ON differences (machine);

CREATE TABLE difference_pieces (
    task text NOT NULL,
    submission integer NOT NULL,
    number integer NOT NULL CHECK (number >= 0),
    sha256 text NOT NULL,
    content bytea NOT NULL CHECK (length(content) <= 1048576),
    PRIMARY KEY (task, submission, number),
    FOREIGN KEY (task, submission) REFERENCES differences ON DELETE CASCADE
);
COMMENT ON TABLE difference_pieces IS 'The parcel of a difference, cut into pieces.';

-- What is settled, or has been replaced by a later submission, is of no use to anybody: it goes in the same transaction.
CREATE FUNCTION forget_differences() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM differences WHERE task = NEW.id
        AND (submission <> NEW.submission OR NEW.state IN ('completed', 'cancelled', 'archived'));
    RETURN NULL;
END $$;

CREATE TRIGGER forget_differences AFTER UPDATE OF state, submission ON tasks
    FOR EACH ROW WHEN (NEW.submission <> OLD.submission OR NEW.state IN ('completed', 'cancelled', 'archived'))
    EXECUTE FUNCTION forget_differences();
