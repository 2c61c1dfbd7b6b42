-- Three roles besides the owner of the tables, and what their members see. A role that cannot be made by who runs
-- this is left out; rights are given to those that are there. Each machine has a login role of its own in one of
-- them: CREATE ROLE laptop LOGIN IN ROLE artoo_worker;
--
--   artoo_reader    reads everything
--   artoo_worker    a machine that works: of the letters, those of agents whose seats its own role holds
--   artoo_operator  a worker at which the operator sits: all letters

DO $$
DECLARE
    wanted text;
BEGIN
    FOREACH wanted IN ARRAY ARRAY['artoo_worker', 'artoo_operator', 'artoo_reader'] LOOP
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = wanted) THEN
            BEGIN
                EXECUTE format('CREATE ROLE %I NOLOGIN', wanted);
                IF wanted = 'artoo_operator' THEN
                    GRANT artoo_worker TO artoo_operator;
                END IF;
            EXCEPTION
                WHEN insufficient_privilege OR undefined_object THEN RAISE NOTICE 'no right to make the role %', wanted;
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
    seen record;
    own CONSTANT text := 'IN (SELECT agent FROM artoo.seats WHERE db_role = current_user'
        ' UNION ALL SELECT name FROM artoo.foreign_agents)';
    seat CONSTANT text := '(EXISTS (SELECT FROM artoo.seat_rules r WHERE r.agent = seats.agent AND r.db_role = current_user)'
        ' OR NOT EXISTS (SELECT FROM artoo.seat_rules r WHERE r.agent = seats.agent))';
BEGIN
    FOR seen IN SELECT tablename, policyname FROM pg_policies WHERE schemaname = 'artoo' LOOP
        EXECUTE format('DROP POLICY %I ON artoo.%I', seen.policyname, seen.tablename);
    END LOOP;

    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'artoo_worker') THEN
        GRANT USAGE ON SCHEMA artoo TO artoo_worker;
        GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA artoo TO artoo_worker;
        GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA artoo TO artoo_worker;
        GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA artoo TO artoo_worker;
        REVOKE INSERT, UPDATE, DELETE ON artoo.artoo_schema, artoo.seat_rules FROM artoo_worker;
        -- Tables that a migration marks as append-only: what stands there stays there.
        FOR kept IN
            SELECT format('%I.%I', n.nspname, c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
            WHERE n.nspname = 'artoo' AND c.relkind = 'r'
                AND obj_description(c.oid, 'pg_class') LIKE 'Append-only%'
        LOOP
            EXECUTE format('REVOKE UPDATE, DELETE, TRUNCATE ON %s FROM artoo_worker', kept);
        END LOOP;

        -- What a letter says, from whom and to whom, stays as it was sent.
        REVOKE UPDATE ON artoo.mails FROM artoo_worker;
        GRANT UPDATE (partition, queued_us, archived_at_us, note, attempts, epoch, claim, holder, lease_us)
            ON artoo.mails TO artoo_worker;
        EXECUTE 'CREATE POLICY read_own ON artoo.mails FOR SELECT TO artoo_worker USING (recipient ' || own
            || ' OR sender ' || own || ')';
        EXECUTE 'CREATE POLICY send_own ON artoo.mails FOR INSERT TO artoo_worker WITH CHECK (sender ' || own || ')';
        -- Who sent a letter delivers it; who it is for takes it, answers it and files it away.
        EXECUTE 'CREATE POLICY deal_with_own ON artoo.mails FOR UPDATE TO artoo_worker USING (recipient ' || own
            || ' OR (partition = ''outbox'' AND sender ' || own || ')) WITH CHECK (recipient ' || own
            || ' OR sender ' || own || ')';
        EXECUTE 'CREATE POLICY forget_own ON artoo.mails FOR DELETE TO artoo_worker USING (partition = ''archive'''
            || ' AND (recipient ' || own || ' OR sender ' || own || '))';

        CREATE POLICY anybodys ON artoo.events FOR ALL TO artoo_worker
            USING (kind <> 'Mail' OR db_role = current_user) WITH CHECK (db_role = current_user);

        CREATE POLICY look ON artoo.seats FOR SELECT TO artoo_worker USING (TRUE);
        EXECUTE 'CREATE POLICY take ON artoo.seats FOR INSERT TO artoo_worker WITH CHECK ' || seat;
        EXECUTE 'CREATE POLICY take_over ON artoo.seats FOR UPDATE TO artoo_worker'
            ' USING (db_role = current_user OR lease_us <= artoo.now_us()) WITH CHECK ' || seat;
        CREATE POLICY leave ON artoo.seats FOR DELETE TO artoo_worker USING (db_role = current_user);
    END IF;

    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'artoo_operator') THEN
        CREATE POLICY operators ON artoo.mails FOR ALL TO artoo_operator USING (TRUE) WITH CHECK (TRUE);
        CREATE POLICY operators ON artoo.events FOR ALL TO artoo_operator
            USING (TRUE) WITH CHECK (db_role = current_user);
    END IF;

    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'artoo_reader') THEN
        GRANT USAGE ON SCHEMA artoo TO artoo_reader;
        GRANT SELECT ON ALL TABLES IN SCHEMA artoo TO artoo_reader;
        CREATE POLICY readers ON artoo.mails FOR SELECT TO artoo_reader USING (TRUE);
        CREATE POLICY readers ON artoo.events FOR SELECT TO artoo_reader USING (TRUE);
        CREATE POLICY readers ON artoo.seats FOR SELECT TO artoo_reader USING (TRUE);
    END IF;
END $$;
