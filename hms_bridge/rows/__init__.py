"""Reads the rows of a snapshot as Arrow, and writes insert and delete events."""
