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
        within="Permissions.of_copy",
        old="self.mode if has_group else self.of_strangers",
        new="self.mode",
        test=_OF_COPY,
    ),
    Mutation(
        name="a copy is wider than the directory it lies in",
        file="changemanager/filesystem/permissions.py",
        within="Permissions.of_copy",
        old="above.narrow(mode)",
        new="mode",
        test=_OF_COPY,
    ),
    Mutation(
        name="a new file is wider than its directory on a local disk",
        file="changemanager/filesystem/local.py",
        within="LocalVolume._create",
        old="directory.narrow(438)",
        new="438",
        test=_MADE,
    ),
    Mutation(
        name="a new directory is wider than the one above on a local disk",
        file="changemanager/filesystem/local.py",
        within="LocalVolume._make",
        old=("permissions.narrow(limit if last is None or level != place else last)"),
        new="limit if last is None or level != place else last",
        test=_MADE,
    ),
    Mutation(
        name="a new file on HDFS is wider than its directory",
        file="changemanager/filesystem/hdfs_client.py",
        within="HdfsClientVolume._first_mode",
        old="above.narrow",
        new="int",
        test=f"{_RULE}test_what_is_made_on_hdfs_is_no_wider_than_its_directory",
    ),
    Mutation(
        name="a copy on HDFS keeps the mode of a group that it is not of",
        file="changemanager/filesystem/hdfs_client.py",
        within="HdfsClientVolume._first_mode",
        old="like.group == above.group",
        new="like.group != above.group",
        test=f"{_RULE}test_everybody_else_narrows_and_asks_and_says_so_once",
    ),
    Mutation(
        name="a copied file has what the umask leaves",
        file="changemanager/transfer.py",
        within="copy_verified",
        old="volume.write_new(part.path, reading, like)",
        new="volume.write_new(part.path, reading)",
        test=f"{_COPIED}test_a_load_is_never_wider_than_its_source",
    ),
    Mutation(
        name="a compacted file has what the umask leaves",
        file="hms_bridge/compaction/kernel.py",
        within="_new_file",
        old="volume.open_output(path, like)",
        new="volume.open_output(path)",
        test=f"{_COPIED}test_what_is_compacted_may_be_read_by_who_may_read_all_of_it",
    ),
    Mutation(
        name="a compacted file is open to whom one of its inputs was",
        file="changemanager/filesystem/permissions.py",
        within="common",
        old="mode &= file.mode if is_of_one_group else file.of_strangers",
        new="mode = file.mode if is_of_one_group else file.of_strangers",
        test=f"{_RULE}test_common",
    ),
    Mutation(
        name="a dump is open to all",
        file="hms_bridge/repl/format/texts.py",
        within="make_dump_directory",
        old="location.volume.make_directory(location.path, limit=DUMP_MODE_MAX)",
        new="location.volume.make_directory(location.path)",
        test=f"{_COPIED}test_a_dump_is_closed_to_all_others",
    ),
    Mutation(
        name="nobody is warned of an archive that is open to all",
        file="changemanager/archive_directory.py",
        within="warn_if_open",
        old="permissions is not None and (not permissions.keeps_others_out)",
        new="False",
        test=f"{_COPIED}test_an_archive_that_is_open_to_all_is_said",
    ),
    Mutation(
        name="a SQLite database is made by the umask",
        file="hms_bridge/backend/sqlite_file.py",
        within="keep_for_owner.connect",
        old="place is None",
        new="True",
        test="tests/backend/test_sqlite_file.py::"
        "test_a_new_database_is_its_owners_with_all_that_stands_beside_it",
    ),
    Mutation(
        name="a SQLite database that is there is opened beside SQLite, and its locks go",
        file="hms_bridge/backend/sqlite_file.py",
        within="_look",
        old=(
            "if not place.exists():\n"
            "    os.close(os.open(place, os.O_CREAT | os.O_EXCL | os.O_WRONLY "
            "| os.O_CLOEXEC, 384))"
        ),
        new=(
            "if True:\n    os.close(os.open(place, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 384))"
        ),
        test="tests/backend/test_sqlite_file.py::"
        "test_opening_a_database_again_takes_no_lock_from_who_has_it_open",
    ),
    Mutation(
        name="a file of JSON lines is made by the umask",
        file="hms_bridge/hooks/json_lines.py",
        within="_for_owner_alone",
        old="384",
        new="438",
        test="tests/hooks/test_shipped.py::test_a_new_file_of_json_lines_is_its_owners_alone",
    ),
)
