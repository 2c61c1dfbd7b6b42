"""The team's database on SQLite or PostgreSQL, with its migrations, transactions and steady clock."""
