"""The on-disk ACID format: names, bucket codec, directory state, markers. No I/O."""
