"""REPL DUMP, LOAD, VERIFY and STATUS in Hive's layout."""
