"""Records: catalog, transactions, locks, compactions, events, id lists. No I/O."""
