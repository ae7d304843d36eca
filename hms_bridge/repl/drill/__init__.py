"""Drills: what is kept of a replication is loaded where nobody works, compared, and removed."""
