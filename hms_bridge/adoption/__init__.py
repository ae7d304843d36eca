"""Registers table directories that Hive left behind, after a metastore was lost."""
