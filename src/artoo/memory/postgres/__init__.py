"""Shared memory on PostgreSQL: the same ports, the same potentials, for any number of machines."""
