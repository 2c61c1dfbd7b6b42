-- What everything else in the store stands on: one clock, and the machines that use it.

CREATE FUNCTION now_us() RETURNS bigint LANGUAGE sql VOLATILE PARALLEL SAFE
RETURN (extract(epoch FROM clock_timestamp()) * 1000000)::bigint;
COMMENT ON FUNCTION now_us() IS 'The clock of the store, in microseconds since 1970: leases and waiting go by it.';

CREATE TABLE machines (
    id text PRIMARY KEY CHECK (id <> ''),
    name text NOT NULL CHECK (name <> ''),
    program text NOT NULL,
    projects text NOT NULL DEFAULT '[]',
    first_seen_us bigint NOT NULL,
    last_seen_us bigint NOT NULL
);
COMMENT ON TABLE machines IS 'Homes that use this store. projects: those whose work a machine takes, as a JSON list.';
