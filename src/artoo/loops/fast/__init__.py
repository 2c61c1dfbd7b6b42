"""The fast loop for one subtask, with executor, validator, agreement, judgement and compaction."""
