"""Answers of real metastores, recorded for the tests that run without Java."""
