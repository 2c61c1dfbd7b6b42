"""The heartbeat loop of an agent, with its duties, its back-off, and the ledger of beats."""
