"""Ratios of this project against a peer or a limit, measured in one run: `make bench`."""
