"""What a dump is on disk: its paths and texts, read and written, and what is believed of them."""
