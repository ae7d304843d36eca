"""A session: what opens, locks, keeps alive and ends transactions of readers and writers."""
