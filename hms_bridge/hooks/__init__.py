"""Code of others that is asked before a change, told inside of its transaction, or after it."""
