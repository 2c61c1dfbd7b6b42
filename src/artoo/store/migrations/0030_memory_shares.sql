-- Memory has one implementation for SQLite and PostgreSQL now: it counts sums itself, in whole numbers of 2^-64.

DROP TRIGGER memory_in ON memory_megrams;
DROP TRIGGER memory_out ON memory_megrams;
DROP TRIGGER memory_over ON memory_megrams;
DROP FUNCTION memory_count();

CREATE FUNCTION exact_sum(one numeric, other numeric) RETURNS numeric LANGUAGE sql IMMUTABLE AS 'SELECT one + other';

CREATE TABLE memory_recalled (id text COLLATE "C" PRIMARY KEY, at_us bigint NOT NULL);
COMMENT ON TABLE memory_recalled IS 'When rules were last recalled.';
INSERT INTO memory_recalled (id, at_us) SELECT id, recalled_us FROM memory_megrams WHERE recalled_us IS NOT NULL;

ALTER TABLE memory_megrams
    DROP COLUMN recalled_us, DROP COLUMN kind, DROP COLUMN intent,
    ALTER COLUMN attention TYPE numeric USING round(attention * 18446744073709551616),
    ALTER COLUMN decision TYPE numeric USING round(decision * 18446744073709551616);
COMMENT ON TABLE memory_megrams IS
    'What was experienced and concluded. `memory_sums` changes in the transaction that changes this.';
COMMENT ON COLUMN memory_megrams.attention IS
    '|f|·exp(k·(birth − epoch))·2^64 as its writer computed it: another machine''s exp may differ in the last place.';

DROP INDEX memory_wide;
DELETE FROM memory_sums;
ALTER TABLE memory_sums ADD COLUMN latest_us bigint NOT NULL;
COMMENT ON COLUMN memory_sums.latest_us IS 'No entry was born later.';
INSERT INTO memory_sums (space, entity, k, epoch, kind, entries, latest_us, attention, decision)
SELECT space, entity, k, epoch, (derived::integer | ((sigma = 0)::integer << 1))::smallint, count(*), max(born_us),
    sum(attention), sum(decision)
FROM memory_megrams WHERE level <> 'C' GROUP BY 1, 2, 3, 4, 5;
CREATE INDEX memory_of_kind ON memory_sums (entity, space);
