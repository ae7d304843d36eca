"""Repair: what is wrong between a source and its replica, and the smallest step that ends it."""
