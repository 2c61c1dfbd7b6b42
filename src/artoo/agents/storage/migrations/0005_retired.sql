-- Agents that the operator has ended.

ALTER TABLE agents ADD COLUMN retired INTEGER NOT NULL DEFAULT 0;
