"""A Hive-Metastore-compatible service, and everything that reads or writes ACID tables."""
