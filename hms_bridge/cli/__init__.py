"""The composition root: `hms-bridge …`. The only place where adapters meet ports."""
