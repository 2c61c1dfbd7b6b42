"""Access to language models, with wires, retries, budgets, prices, parsing of texts, and the embedded model."""
