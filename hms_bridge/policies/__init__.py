"""Policies of replication and their history, in SQL."""
