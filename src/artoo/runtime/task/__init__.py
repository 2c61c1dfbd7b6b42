"""One task from request to result, with its roles, tools, log, Auditor, resumption and conversations."""
