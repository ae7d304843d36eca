"""Compaction: what is eligible, what to do (pure plans), and the worker that does it."""
