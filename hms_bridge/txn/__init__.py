"""SQL of transactions, write ids, locks and the compaction queue."""
