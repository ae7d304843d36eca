"""What a dry run must not change: files, directories, rows of a database."""

from __future__ import annotations

import hashlib
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any


def checksums(folder: Path) -> dict[str, str]:
    """Every file and directory below a folder, with its content."""
    return {
        str(path.relative_to(folder)): (
            hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "directory"
        )
        for path in sorted(folder.rglob("*"))
    }


def database_rows(database: Path) -> dict[str, list[tuple[Any, ...]]]:
    """All rows of all tables of a SQLite database."""
    with closing(sqlite3.connect(f"file:{database}?immutable=1", uri=True)) as connection:
        listed = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        return {
            name: sorted(connection.execute(f'SELECT * FROM "{name}"'), key=repr)
            for (name,) in listed.fetchall()
        }
