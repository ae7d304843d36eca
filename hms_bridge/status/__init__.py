"""The web page and the metrics."""
