-- Whose letters a machine's role may read and consume: those of the agents whose seats it holds.

ALTER TABLE seats ADD COLUMN db_role text NOT NULL DEFAULT current_user;
COMMENT ON COLUMN seats.db_role IS 'The role that took the seat, set by the server: its machine reads the agent''s letters.';

CREATE FUNCTION seat_of_role() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.db_role := current_user;
    RETURN NEW;
END $$;
CREATE TRIGGER seats_name_their_role BEFORE INSERT OR UPDATE ON seats
    FOR EACH ROW EXECUTE FUNCTION seat_of_role();

CREATE TABLE seat_rules (
    agent text NOT NULL,
    db_role text NOT NULL,
    PRIMARY KEY (agent, db_role)
);
COMMENT ON TABLE seat_rules IS
    'The owner''s: which roles may take the seat of an agent. An agent without a rule may be seated by any worker.';

ALTER TABLE events ADD COLUMN db_role text NOT NULL DEFAULT current_user;
COMMENT ON COLUMN events.db_role IS 'The role that wrote it: a letter on its way to a stream is read by no other.';

-- Who owns the tables is not bound by this, nor is anybody before roles.sql says whom it lets in.
ALTER TABLE seats ENABLE ROW LEVEL SECURITY;
ALTER TABLE mails ENABLE ROW LEVEL SECURITY;
ALTER TABLE events ENABLE ROW LEVEL SECURITY;
