"""The embedded local model, with its download, its files, llama.cpp, and stored prompt prefixes."""
