"""The metastore port over thrift: ours or a real Hive metastore."""
