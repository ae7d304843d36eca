"""Speaks Hive's thrift protocol to clients."""
