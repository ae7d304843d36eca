"""The archive of replaced files. Knows files, not metastores."""
