"""Mutations of who may use what is copied; read by way of `mutations.MUTATIONS`."""

from __future__ import annotations

from tests.simulation.mutation import Mutation

_COPIED = "tests/repl/test_copied_permissions.py::"
_RULE = "tests/changemanager/test_permissions.py::"
_OF_COPY = f"{_RULE}test_of_copy"
_MADE = f"{_RULE}test_what_is_made_locally"

OF_PERMISSIONS = (
    Mutation(
        name="a copy gives another group the rights of its source's group",
        file="changemanager/filesystem/permissions.py",
        old="        mode = self.mode if has_group else self.of_strangers\n",
        new="        mode = self.mode\n",
        test=_OF_COPY,
    ),
    Mutation(
        name="a copy is wider than the directory it lies in",
        file="changemanager/filesystem/permissions.py",
        old="        return above.narrow(mode) | 0o400\n",
        new="        return mode | 0o400\n",
        test=_OF_COPY,
    ),
    Mutation(
        name="a new file is wider than its directory on a local disk",
        file="changemanager/filesystem/local.py",
        old="        mode = directory.narrow(0o666) if like is None else 0o600\n",
        new="        mode = 0o666 if like is None else 0o600\n",
        test=_MADE,
    ),
    Mutation(
        name="a new directory is wider than the one above on a local disk",
        file="changemanager/filesystem/local.py",
        old="            mode = permissions.narrow(limit if last is None or level != place "
        "else last)\n",
        new="            mode = limit if last is None or level != place else last\n",
        test=_MADE,
    ),
    Mutation(
        name="a new file on HDFS is wider than its directory",
        file="changemanager/filesystem/hdfs_client.py",
        old="            return above.narrow(0o666 & ~self.fs.umask)\n",
        new="            return int(0o666 & ~self.fs.umask)\n",
        test=f"{_RULE}test_what_is_made_on_hdfs_is_no_wider_than_its_directory",
    ),
    Mutation(
        name="a copy on HDFS keeps the mode of a group that it is not of",
        file="changemanager/filesystem/hdfs_client.py",
        old="        return like.of_copy(above, has_group=like.group == above.group)\n",
        new="        return like.of_copy(above, has_group=like.group != above.group)\n",
        test=f"{_RULE}test_everybody_else_narrows_and_asks_and_says_so_once",
    ),
    Mutation(
        name="a copied file has what the umask leaves",
        file="changemanager/transfer.py",
        old="        volume.write_new(part.path, reading, like)\n",
        new="        volume.write_new(part.path, reading)\n",
        test=f"{_COPIED}test_a_load_is_never_wider_than_its_source",
    ),
    Mutation(
        name="a compacted file has what the umask leaves",
        file="hms_bridge/compaction/kernel.py",
        old="    with volume.open_output(path, like) as sink:\n",
        new="    with volume.open_output(path) as sink:\n",
        test=f"{_COPIED}test_what_is_compacted_may_be_read_by_who_may_read_all_of_it",
    ),
    Mutation(
        name="a compacted file is open to whom one of its inputs was",
        file="changemanager/filesystem/permissions.py",
        old="        mode &= file.mode if is_of_one_group else file.of_strangers\n",
        new="        mode = file.mode if is_of_one_group else file.of_strangers\n",
        test=f"{_RULE}test_common",
    ),
    Mutation(
        name="a dump is open to all",
        file="hms_bridge/repl/format/texts.py",
        old="    location.volume.make_directory(location.path, limit=DUMP_MODE_MAX)\n",
        new="    location.volume.make_directory(location.path)\n",
        test=f"{_COPIED}test_a_dump_is_closed_to_all_others",
    ),
    Mutation(
        name="nobody is warned of an archive that is open to all",
        file="changemanager/archive_directory.py",
        old="    if permissions is not None and not permissions.keeps_others_out:\n",
        new="    if False:\n",
        test=f"{_COPIED}test_an_archive_that_is_open_to_all_is_said",
    ),
    Mutation(
        name="a SQLite database is made by the umask",
        file="hms_bridge/backend/sqlite_file.py",
        old="        if place is None:\n",
        new="        if True:\n",
        test="tests/backend/test_sqlite_file.py::"
        "test_a_new_database_is_its_owners_with_all_that_stands_beside_it",
    ),
    Mutation(
        name="a SQLite database that is there is opened beside SQLite, and its locks go",
        file="hms_bridge/backend/sqlite_file.py",
        old="    if not place.exists():\n        os.close(os.open(place, os.O_CREAT | os.O_EXCL | ",
        new="    if True:\n        os.close(os.open(place, os.O_CREAT | ",
        test="tests/backend/test_sqlite_file.py::"
        "test_opening_a_database_again_takes_no_lock_from_who_has_it_open",
    ),
    Mutation(
        name="a file of JSON lines is made by the umask",
        file="hms_bridge/hooks/json_lines.py",
        old="    return os.open(path, flags, 0o600)\n",
        new="    return os.open(path, flags, 0o666)\n",
        test="tests/hooks/test_shipped.py::test_a_new_file_of_json_lines_is_its_owners_alone",
    ),
)
