"""ORC files as ACID needs them: footer keys, stripe statistics, stripe-level copy."""
