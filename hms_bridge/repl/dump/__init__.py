"""REPL DUMP: a bootstrap or the events since the last dump."""
