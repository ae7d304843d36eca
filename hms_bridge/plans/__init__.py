"""What Spark's Java asks: which tables there are, and what to read of them."""
