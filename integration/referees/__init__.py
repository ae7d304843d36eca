"""One module per real system: where it comes from, how it starts, how it is asked."""
