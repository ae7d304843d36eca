"""Which files, which rows, at which write ids. No I/O."""
