"""Models of rows in partitions: maps that travel as seeds, moments and slopes that add."""
