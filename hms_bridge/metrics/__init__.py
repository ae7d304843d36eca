"""Figures for a monitor, as OpenMetrics; the only room that speaks Prometheus."""
