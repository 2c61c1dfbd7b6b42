"""The query layer over SQLite and PostgreSQL, with connections, schema steps, and stored files."""
