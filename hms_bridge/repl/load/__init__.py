"""REPL LOAD: a dump brought to its replica."""
