"""``hms-bridge repl verify``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import click

from hms_bridge.cli.options import format_option, settings_options
from hms_bridge.cli.output import print_rows, say, size_text, time_text
from hms_bridge.cli.progress import working
from hms_bridge.cli.repl_options import dumps_root_option, into_option
from hms_bridge.config.settings import Settings
from hms_bridge.model.counted import counted

if TYPE_CHECKING:
    from changemanager.location import Resolver
    from hms_bridge.repl.at_target import TargetFile, TargetReport
    from hms_bridge.repl.format.verify import VerifiedFile, VerifyReport

_COLUMNS = (
    "place", "table", "partition", "event", "file", "size", "archived", "expires", "reason",
    "at_target", "at_target_reason",
)  # fmt: skip
_SHOWN = (
    "place", "at_target", "event", "table", "partition", "file", "size", "expires", "lost because",
    "at_target_reason",
)  # fmt: skip


@click.command()
@click.argument("directory", metavar="[DUMP]", required=False)
@click.option("--newest", metavar="DATABASE", help="The newest dump of DATABASE.")
@dumps_root_option
@click.option(
    "--target", "target_url", metavar="URL", help="Look there too: a replica's metastore."
)
@into_option
@click.option("--quick", "is_quick", is_flag=True, help="Look for names and sizes only.")
@click.option("--all", "is_all", is_flag=True, help="List every file, not only those in trouble.")
@format_option
@settings_options
def verify(
    directory: str | None,
    newest: str | None,
    given_root: str | None,
    target_url: str | None,
    target_database: str | None,
    is_quick: bool,
    is_all: bool,
    output_format: str,
    settings: Settings,
) -> None:
    """Look for every file that a dump names: at its source, in the archive, or missing.

    With --target also: whether the replica has it, something that was merged of it, or has still
    to copy it. Exit code 1 if any file is lost, with --target 2 if the replica lacks one, 3 if that
    is unclear, as a later change may have removed it. Nothing is touched.

    \b
    Examples:
      hms-bridge repl verify --newest sales --root /dr/dumps --target sqlite:///replica.db
      hms-bridge repl verify /dr/dumps/c2FsZXM=/7f3c0d8e-…
      hms-bridge repl verify /dr/dumps/c2FsZXM=/7f3c0d8e-… --all --format jsonl
      hms-bridge repl verify --newest sales --root /dr/dumps
    """
    from hms_bridge.config.file_systems import file_systems

    if target_database is not None and target_url is None:
        raise click.UsageError("--into names a database of --target, which was not given")
    location = _dump(directory, newest, given_root, file_systems(settings), settings)
    with working("looking for files") as show:
        report = _verified(location, settings, show, is_quick=is_quick)
        there = None
        if target_url is not None:
            show("looking at the target")
            there = _at_target(report, target_url, target_database, settings, is_quick=is_quick)
    rows = list(_rows(report, there, is_all=is_all or output_format != "table"))
    if rows or output_format != "table":
        print_rows(rows, _COLUMNS, output_format, shown=_SHOWN)
    _say_whereabouts(report)
    if there is not None:
        _say_target(there)
    exit_code = report.exit_code if there is None else there.exit_code
    if exit_code:
        raise SystemExit(exit_code)


def _verified(
    location: str, settings: Settings, show: Callable[[str], None], *, is_quick: bool
) -> VerifyReport:
    """A person is shown how many files were found where, as they are."""
    from changemanager.containment import ResolverWithin
    from hms_bridge.cli.repl_requests import dump_rules, load_roots
    from hms_bridge.config.file_systems import file_systems
    from hms_bridge.connect import archive_root
    from hms_bridge.repl.format.verify import verify_dump

    counts: Counter[str] = Counter()

    def looked(file: VerifiedFile) -> None:
        counts[file.place.value] += 1
        show(", ".join(f"{count} {place}" for place, count in counts.items()))

    resolve = file_systems(settings)
    roots = load_roots(settings.repl.load_roots, settings)
    return verify_dump(
        resolve,
        location,
        retain_ms=settings.archive.retain_ms,
        own_archive=archive_root(settings),
        rules=dump_rules(settings),
        sources=ResolverWithin(resolve, roots) if roots else None,
        is_quick=is_quick,
        on_looked=looked,
    )


def _at_target(
    report: VerifyReport,
    target_url: str,
    target_database: str | None,
    settings: Settings,
    *,
    is_quick: bool,
) -> TargetReport:
    from hms_bridge.cli.repl_requests import dump_rules
    from hms_bridge.config.file_systems import file_systems
    from hms_bridge.connect import connected
    from hms_bridge.repl.at_target import TargetCheck
    from hms_bridge.repl.format.layout import DumpPaths
    from hms_bridge.repl.format.reader import DumpReader

    resolver = file_systems(settings)
    reader = DumpReader(resolver, DumpPaths(report.directory), dump_rules(settings))
    database = target_database or reader.source_database
    with connected(target_url, settings, is_created=False) as target:
        return TargetCheck(target, resolver, database, is_quick=is_quick).run(reader, report)


def _rows(
    report: VerifyReport, there: TargetReport | None, *, is_all: bool
) -> Iterator[dict[str, object]]:
    """All files, or those in trouble: missing, or not as they should be at the target."""
    from changemanager.whereabouts import Whereabouts
    from hms_bridge.repl.at_target import TROUBLES

    states = [None] * len(report.files) if there is None else there.files
    for file, state in zip(report.files, states, strict=True):
        is_missing = file.place is Whereabouts.MISSING
        if is_all or (is_missing if state is None else is_missing or state.state in TROUBLES):
            yield _row(file, state)


def _say_target(report: TargetReport) -> None:
    from hms_bridge.repl.at_target import AtTarget

    counts = [f"{count} {state.value}" for state in AtTarget if (count := report.count(state))]
    stands = (
        "is not bootstrapped" if report.stands_at is None else f"is at event {report.stands_at}"
    )
    say(f"{report.target_database} of the target {stands}: {', '.join(counts) or 'no files'}")
    if report.bytes_to_copy:
        say(f"a load has {size_text(report.bytes_to_copy)} to copy")


def _say_whereabouts(report: VerifyReport) -> None:
    from changemanager.whereabouts import Whereabouts

    say(
        f"{counted(len(report.files), 'file')}, {size_text(report.size_bytes)}: "
        f"{report.count(Whereabouts.AT_SOURCE)} at source, "
        f"{report.count(Whereabouts.IN_CM)} in CM, {len(report.missing)} missing"
    )
    if report.load_before_ms:
        say(f"without pins the archive keeps them until {time_text(report.load_before_ms)}")
    for archive in report.foreign_archives:
        say(
            f"some are in {archive}, which is not hive.repl.cmrootdir here: its owner's "
            "hive.repl.cm.retain tells how long"
        )


def _dump(
    directory: str | None,
    newest: str | None,
    given_root: str | None,
    resolver: Resolver,
    settings: Settings,
) -> str:
    """The dump that is meant. Raises UsageError for none or two, ReplError if it is not there."""
    from hms_bridge.cli.repl_requests import repl_root
    from hms_bridge.connect import absolute_location
    from hms_bridge.errors import ReplError
    from hms_bridge.repl.format.directories import list_dumps, newest_finished
    from hms_bridge.repl.format.layout import HIVE_DIRECTORY

    if (directory is None) == (newest is None):
        raise click.UsageError("name a dump's directory, or a database with --newest")
    if newest is not None:
        root = repl_root(given_root, settings)
        dump = newest_finished(list_dumps(resolver, root, newest.lower()))
        if dump is None:
            raise ReplError(f"there is no finished dump of {newest} below {root}; give its --root")
        return dump.paths.root
    location = absolute_location(str(directory), settings.hadoop)
    try:
        is_there = resolver(f"{location}/{HIVE_DIRECTORY}").status() is not None
    except NotADirectoryError:
        is_there = False
    if not is_there:
        raise ReplError(f"there is no dump in {location}; give the dump_dir that repl dump told")
    return location


def _row(file: VerifiedFile, there: TargetFile | None) -> dict[str, object]:
    from changemanager.whereabouts import Whereabouts

    named = file.named
    return {
        "place": file.place.value,
        "table": str(named.target.name),
        "partition": named.target.partition,
        "event": named.event_id,
        "file": named.file.uri,
        "size": file.size_bytes,
        "archived": time_text(file.archived_at_ms),
        "expires": time_text(file.expires_at_ms),
        "reason": file.reason or None,
        "at_target": there.state.value if there else None,
        "at_target_reason": (there.reason or None) if there else None,
        "lost because": file.reason if file.place is Whereabouts.MISSING else None,
    }
