"""The real systems beside which hms-bridge must hold: how they are installed, run and asked."""
