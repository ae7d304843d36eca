"""Mutations of what directories keep from a copy; read by way of `mutations.MUTATIONS`."""

from __future__ import annotations

from tests.simulation.mutation import Mutation

_ABOVE = "tests/changemanager/test_directories_above.py::"
_RULE = f"{_ABOVE}test_what_counts_of_a_mode"
_COPIED = "tests/repl/test_copied_permissions.py::"
_MOVED = (
    f"{_COPIED}test_what_is_moved_into_archive_and_trash_leaves_no_directory_with_more_than_it_had"
    "_there"
)

OF_DIRECTORIES_ABOVE = (
    Mutation(
        name="a copy is open to whom a directory kept from its source",
        file="changemanager/transfer.py",
        within="copy_verified",
        old="own.through(directories)",
        new="own",
        test=f"{_COPIED}test_a_load_opens_no_file_whose_directory_is_closed",
    ),
    Mutation(
        name="a file that is moved is open to whom a directory kept from it",
        file="changemanager/transfer.py",
        within="_is_narrowed",
        old="readers is not None and readers != own",
        new="False",
        test=_MOVED,
    ),
    Mutation(
        name="a file whose mode cannot be changed is moved as it is",
        file="changemanager/transfer.py",
        within="_is_narrowed",
        old="return False",
        new="return True",
        test=_MOVED,
    ),
    Mutation(
        name="a group that may not be the directory's passes where all others do not",
        file="changemanager/filesystem/permissions.py",
        within="Permissions._passing",
        old="self.group == file.group",
        new="True",
        test=_RULE,
    ),
    Mutation(
        name="the owner of a directory passes it, whatever it says",
        file="changemanager/filesystem/permissions.py",
        within="Permissions._passing",
        old="self.owner == file.owner",
        new="True",
        test=_RULE,
    ),
    Mutation(
        name="only the lowest directory keeps somebody out",
        file="changemanager/directories_above.py",
        within="DirectoriesAbove._look_at_all",
        old="(real, *real.parents)",
        new="(real,)",
        test=f"{_COPIED}test_a_load_opens_no_file_whose_directory_is_closed",
    ),
    Mutation(
        name="a directory that nobody may look at is open",
        file="changemanager/directories_above.py",
        within="_look",
        old="return _CLOSED",
        new="return None",
        test=f"{_ABOVE}test_what_is_gone_says_nothing_and_what_is_refused_is_closed",
    ),
    Mutation(
        name="the archive's directory says who could read what lies in it",
        file="hms_bridge/repl/load/file_copy.py",
        within="FileCopy._directories",
        old="self.above.of(self.sources(file.uri))",
        new="self.above.of(located.location)",
        test=f"{_COPIED}test_a_load_from_the_archive_keeps_a_group_that_is_not_the_archives",
    ),
)
