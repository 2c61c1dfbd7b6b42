-- Agents that have retired: their names, letters and work stay, and nothing new is theirs.

ALTER TABLE agents ADD COLUMN retired boolean NOT NULL DEFAULT FALSE;
