-- Shared memory (R5): megrams, and the running sums of every pair, which the database itself keeps.
--
-- Tags, task ids and intents are the escaped key parts of the embedded store as bytes: they sort as there, and hold
-- what text cannot. `record` is the megram as JSON.

CREATE TABLE memory_megrams (
    id text COLLATE "C" PRIMARY KEY,
    level text NOT NULL CHECK (level IN ('M', 'K', 'C')),
    space bytea NOT NULL,
    entity bytea NOT NULL,
    born_us bigint NOT NULL,
    recalled_us bigint,
    state text NOT NULL,
    derived boolean NOT NULL,
    hypothesis boolean NOT NULL,
    f double precision NOT NULL,
    sigma double precision NOT NULL,
    k double precision NOT NULL,
    kind smallint NOT NULL GENERATED ALWAYS AS ((derived::integer | ((sigma = 0)::integer << 1))::smallint) STORED,
    epoch bigint NOT NULL,
    attention numeric NOT NULL,
    decision numeric NOT NULL,
    task bytea,
    intent bytea,
    record text NOT NULL
);
COMMENT ON TABLE memory_megrams IS 'What was experienced and concluded. Sums follow by triggers, in the same transaction.';
COMMENT ON COLUMN memory_megrams.attention IS
    '|f|·exp(k·(birth − epoch)) exactly as its writer computed it: another machine''s exp may differ in the last place.';

CREATE INDEX memory_evidence ON memory_megrams (space, entity, born_us, id) WHERE level <> 'C';
CREATE INDEX memory_rules ON memory_megrams (space, entity, born_us, id) WHERE level = 'C';
CREATE INDEX memory_knowledge ON memory_megrams (space, entity, born_us, id) WHERE level = 'K';
CREATE INDEX memory_dissonance ON memory_megrams (space, entity, born_us, id) WHERE state = 'dissonance';
CREATE INDEX memory_guesses ON memory_megrams (space, entity, id) WHERE hypothesis;
CREATE INDEX memory_taught ON memory_megrams (task, id) WHERE task IS NOT NULL;
CREATE INDEX memory_standing ON memory_megrams (id) WHERE level = 'C';

CREATE TABLE memory_sums (
    space bytea NOT NULL,
    entity bytea NOT NULL,
    k double precision NOT NULL,
    epoch bigint NOT NULL,
    kind smallint NOT NULL,
    entries bigint NOT NULL,
    attention numeric NOT NULL,
    decision numeric NOT NULL,
    PRIMARY KEY (space, entity, k, epoch, kind)
) WITH (fillfactor = 70);
COMMENT ON TABLE memory_sums IS
    'Exact sums, one row for each pair, decay, epoch and kind (1: concluded by memory itself, 2: without a valence).';
CREATE INDEX memory_wide ON memory_sums (space) WHERE entity = 'env:local'::bytea;

CREATE TABLE memory_worked (
    intent bytea NOT NULL,
    space bytea NOT NULL,
    entity bytea NOT NULL,
    PRIMARY KEY (intent, space, entity)
);
COMMENT ON TABLE memory_worked IS 'Pairs that worked for an intent.';

CREATE TABLE memory_marks (name bytea PRIMARY KEY, value text NOT NULL);
COMMENT ON TABLE memory_marks IS 'The Dreamer''s cursors and notes.';

CREATE TABLE memory_reports (id text COLLATE "C" PRIMARY KEY, report text NOT NULL);
COMMENT ON TABLE memory_reports IS 'The Dreamer''s last passes.';

CREATE TABLE memory_proposals (
    id text COLLATE "C" PRIMARY KEY,
    status text NOT NULL CHECK (status IN ('open', 'accepted', 'refused')),
    proposal text NOT NULL
);
COMMENT ON TABLE memory_proposals IS 'What the Dreamer would add to the T layer. Only the operator decides.';

CREATE TABLE memory_damaged (id text COLLATE "C" PRIMARY KEY, record text NOT NULL, found_us bigint NOT NULL);
COMMENT ON TABLE memory_damaged IS 'Records that could not be read, set aside by `artoo memory verify`.';

CREATE TABLE memory_turns (
    name text PRIMARY KEY,
    holder text NOT NULL,
    epoch bigint NOT NULL,
    until_us bigint NOT NULL
);
COMMENT ON TABLE memory_turns IS
    'Who dreams, by the clock of the store. Every write of a Dreamer names its epoch; one of a past epoch is refused.';

-- The locks of a transaction are taken in one order: its turn, megrams by id, then (here) what worked and sums by
-- key. A transaction changes megrams with one statement only, so two of them never wait for each other.
CREATE FUNCTION memory_count() RETURNS trigger LANGUAGE plpgsql SET search_path = artoo, pg_temp AS $$
DECLARE
    changed text := CASE TG_OP
        WHEN 'INSERT' THEN 'SELECT 1 AS sign, * FROM added'
        WHEN 'DELETE' THEN 'SELECT -1 AS sign, * FROM removed'
        ELSE 'SELECT 1 AS sign, * FROM added UNION ALL SELECT -1, * FROM removed'
    END;
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO memory_worked (intent, space, entity)
        SELECT DISTINCT intent, space, entity FROM added
        WHERE intent IS NOT NULL AND sigma > 0 AND level <> 'C'
        ORDER BY intent, space, entity
        ON CONFLICT DO NOTHING;
    END IF;
    EXECUTE format(
        'INSERT INTO memory_sums AS kept (space, entity, k, epoch, kind, entries, attention, decision)
        SELECT space, entity, k, epoch, kind, sum(sign), sum(sign * attention), sum(sign * decision)
        FROM (%s) AS changes WHERE level <> ''C''
        GROUP BY space, entity, k, epoch, kind
        HAVING sum(sign) <> 0 OR sum(sign * attention) <> 0 OR sum(sign * decision) <> 0
        ORDER BY space, entity, k, epoch, kind
        ON CONFLICT (space, entity, k, epoch, kind) DO UPDATE SET
            entries = kept.entries + excluded.entries,
            attention = trim_scale(kept.attention + excluded.attention),
            decision = trim_scale(kept.decision + excluded.decision)',
        changed);
    IF TG_OP <> 'INSERT' THEN
        DELETE FROM memory_sums AS kept
        USING (SELECT DISTINCT space, entity, k, epoch, kind FROM removed WHERE level <> 'C') AS gone
        WHERE kept.space = gone.space AND kept.entity = gone.entity AND kept.k = gone.k AND kept.epoch = gone.epoch
            AND kept.kind = gone.kind AND kept.entries = 0;
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER memory_in AFTER INSERT ON memory_megrams
    REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION memory_count();
CREATE TRIGGER memory_out AFTER DELETE ON memory_megrams
    REFERENCING OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION memory_count();
CREATE TRIGGER memory_over AFTER UPDATE ON memory_megrams
    REFERENCING OLD TABLE AS removed NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION memory_count();
