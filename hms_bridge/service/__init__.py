"""The metastore port over SQL: one verb is one database transaction."""
