"""The database: engine, retry, sequences, Hive's own schema as tables."""
