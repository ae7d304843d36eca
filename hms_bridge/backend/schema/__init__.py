"""Hive's own tables as SQLAlchemy Core tables, and how to install and inspect them."""
