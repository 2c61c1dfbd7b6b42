"""Several machines with one PostgreSQL store, with seats of agents, and copies of files and change sets."""
