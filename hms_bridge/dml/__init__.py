"""INSERT, UPDATE, DELETE and SELECT text to plans. No I/O."""
