"""What the cases on the cluster share: a shop's tables, its days, and how rows are compared."""
