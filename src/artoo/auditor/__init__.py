"""The Auditor, with invariants, drift detection, the hash-chained audit log, its verification and reports."""
