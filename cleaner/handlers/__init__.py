"""One handler for each reason to delete."""
