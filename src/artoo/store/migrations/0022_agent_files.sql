-- What a machine that has not the folder of an agent needs to work for it.

CREATE TABLE agent_files (
    agent text NOT NULL REFERENCES agents (name),
    file text NOT NULL CHECK (file IN ('identity.yaml', 'knowledge.md')),
    machine text NOT NULL,
    sha256 text NOT NULL,
    content text NOT NULL,
    kept_us bigint NOT NULL DEFAULT now_us(),
    PRIMARY KEY (agent, file)
);
COMMENT ON TABLE agent_files IS
    'Copies of agents'' files. An identity counts only if its hash is the accepted one (agents.identity_sha256).';
