"""Replay of events on a target: one module for each family."""
