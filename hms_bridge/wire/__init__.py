"""Thrift structs to records and back; what Hive 4 adds to the published bindings, as data."""
