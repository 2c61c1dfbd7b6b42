"""Analysis of shell commands, with parser, wrapper programs, requested hosts and replaced `find`."""
