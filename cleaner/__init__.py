"""Removes what no reader can see, and archives it first where a replica may still need it."""
