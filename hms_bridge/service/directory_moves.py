"""Moves of whole directories: one rename where the file system has it, file by file elsewhere."""

from __future__ import annotations

from typing import Any

from changemanager.location import Location, Resolver, list_tree, open_file_system, parse_uri


def make_directory(uri: str) -> bool:
    """Make a directory with all above it; whether it was not there. Raises OSError."""
    fs, path = _file_system(uri)
    if fs.isdir(path):
        return False
    fs.makedirs(path, exist_ok=True)
    return True


def exists(resolve: Resolver, uri: str) -> bool:
    """Whether anything is at a place."""
    return resolve(uri).status() is not None


def remove_empty(resolve: Resolver, uri: str) -> None:
    """Remove a directory if nothing is in it. Raises OSError if the file system says no."""
    place = resolve(uri)
    has_files = bool(list_tree(place))
    if not has_files and place.status() is not None:
        place.volume.remove_empty_directory(place.path)


def move_directory(resolve: Resolver, source: str, target: str) -> None:
    """Give a directory another name on the same file system. Raises OSError.

    Where directories are only parts of names, files are copied first and removed then, so that
    a crash leaves each of them under at least one name.
    """
    fs, path = _file_system(source)
    target_path = _file_system(target)[1]
    if has_directories(resolve(source)):
        fs.makedirs(target_path.rpartition("/")[0] or "/", exist_ok=True)
        fs.mv(path, target_path, recursive=True)
        return
    complete_move(resolve, source, target)


def complete_move(resolve: Resolver, source: str, target: str) -> None:
    """Bring what is still at ``source`` to ``target``, file by file; again after a crash."""
    fs, path = _file_system(source)
    target_path = _file_system(target)[1]
    there = {file.path: file for file in list_tree(resolve(target))}
    files = [file for file in list_tree(resolve(source)) if file.kind.value == "file"]
    for file in files:
        known = there.get(file.path)
        if known is None or known.size_bytes != file.size_bytes:
            fs.cp_file(f"{path}/{file.path}", f"{target_path}/{file.path}")
    for file in files:
        fs.rm_file(f"{path}/{file.path}")


def has_directories(place: Location) -> bool:
    """Whether directories exist by themselves, so that one rename moves one."""
    return place.volume.capabilities.has_directories


def _file_system(uri: str) -> tuple[Any, str]:
    parsed = parse_uri(uri)
    fs = open_file_system(parsed.scheme or "file", parsed.authority)
    path: str = fs._strip_protocol(uri)
    return fs, path
