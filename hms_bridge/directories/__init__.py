"""Directories of ACID tables: lists what is there, stages what is written, and publishes it."""
