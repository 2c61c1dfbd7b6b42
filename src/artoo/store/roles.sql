-- Two roles besides the owner of the tables. A role that cannot be made by who runs this is left out; rights are
-- given to those that are there. Give them to people and machines: GRANT artoo_worker TO alice;

DO $$
DECLARE
    wanted text;
BEGIN
    FOREACH wanted IN ARRAY ARRAY['artoo_worker', 'artoo_reader'] LOOP
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = wanted) THEN
            BEGIN
                EXECUTE format('CREATE ROLE %I NOLOGIN', wanted);
            EXCEPTION
                WHEN insufficient_privilege THEN RAISE NOTICE 'no right to make the role %', wanted;
                WHEN duplicate_object OR unique_violation THEN NULL;
            END;
        END IF;
    END LOOP;
END $$;

REVOKE ALL ON SCHEMA artoo FROM PUBLIC;
REVOKE ALL ON ALL TABLES IN SCHEMA artoo FROM PUBLIC;

DO $$
DECLARE
    kept text;
BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'artoo_worker') THEN
        GRANT USAGE ON SCHEMA artoo TO artoo_worker;
        GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA artoo TO artoo_worker;
        GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA artoo TO artoo_worker;
        GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA artoo TO artoo_worker;
        REVOKE INSERT, UPDATE, DELETE ON artoo.artoo_schema FROM artoo_worker;
        -- Tables that a migration marks as append-only: what stands there stays there.
        FOR kept IN
            SELECT format('%I.%I', n.nspname, c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
            WHERE n.nspname = 'artoo' AND c.relkind = 'r'
                AND obj_description(c.oid, 'pg_class') LIKE 'Append-only%'
        LOOP
            EXECUTE format('REVOKE UPDATE, DELETE, TRUNCATE ON %s FROM artoo_worker', kept);
        END LOOP;
    END IF;
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'artoo_reader') THEN
        GRANT USAGE ON SCHEMA artoo TO artoo_reader;
        GRANT SELECT ON ALL TABLES IN SCHEMA artoo TO artoo_reader;
    END IF;
END $$;
