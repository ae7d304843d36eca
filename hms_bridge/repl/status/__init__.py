"""How far a replica is behind, and when that becomes a loss."""
