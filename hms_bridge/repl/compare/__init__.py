"""Proof that a replica equals its source: both sides described, then compared without I/O."""
