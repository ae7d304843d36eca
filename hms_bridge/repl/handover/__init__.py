"""A replica takes its source's place, and the source comes back as a replica."""
