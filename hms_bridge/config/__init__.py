"""Hive's settings: declared once, read from hive-site.xml, handed out as frozen records."""
