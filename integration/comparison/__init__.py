"""The same statements on two engines, and what may differ between them."""
