"""SQL of databases, tables and partitions."""
