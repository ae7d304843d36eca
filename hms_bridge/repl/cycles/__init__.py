"""Replication that goes on by itself: cycles of policies, and policies as TOML."""
