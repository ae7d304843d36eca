"""The only folder that imports PySpark: session, data source, compaction and DML jobs."""
