"""REPL DUMP, LOAD, VERIFY and STATUS in Hive's layout.

``format`` is what a dump is on disk, ``dump`` writes one, ``load`` brings it to a replica. Beside
them stands what both share (leases, pins, what an object becomes on the target) or looks at both.
"""
