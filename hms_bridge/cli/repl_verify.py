"""``hms-bridge repl verify``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import click

from hms_bridge.cli.options import format_option, metastore_of_verb, settings_options
from hms_bridge.cli.origin_options import looked_at_option, looked_at_too, places_of_source
from hms_bridge.cli.output import print_rows, say, size_text, time_text
from hms_bridge.cli.progress import working
from hms_bridge.cli.repl_options import dumps_root_option, into_option
from hms_bridge.config.settings import Settings
from hms_bridge.errors import HmsBridgeError
from hms_bridge.model.counted import counted

if TYPE_CHECKING:
    from changemanager.location import Resolver
    from hms_bridge.repl.at_target import TargetFile, TargetReport
    from hms_bridge.repl.format.verify import VerifiedFile, VerifyReport
    from hms_bridge.repl.load.known_places import AskedPlaces
    from hms_bridge.repl.load.source_roots import RefusedPlace

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
@looked_at_option
@click.option(
    "--metastore",
    "asked_url",
    envvar="HMS_BRIDGE_METASTORE",
    metavar="URL",
    help="The source's metastore, or the replica's: asked where the files are, if the dump names "
    "places that nobody has named.  [default: as of repl load]",
)
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
    files_from: tuple[str, ...],
    asked_url: str | None,
    is_quick: bool,
    is_all: bool,
    output_format: str,
    settings: Settings,
) -> None:
    """Look for every file that a dump names: at its source, in the archive, or missing.

    With --target also: whether the replica has it, something that was merged of it, or has still
    to copy it. No dump is believed about places: files are looked for below the dump itself,
    warehouse and archive of the settings, hms.bridge.repl.load.roots and --files-from, and where
    --metastore (the source's or the replica's) and --target say. What a dump names elsewhere is
    neither connected to nor looked at, but counted. Exit code 1 if any file is lost, with --target
    2 if the replica lacks one, 3 if that is unclear, as a later change may have removed it, or if a
    file was not looked for. Nothing is touched.

    \b
    Examples:
      hms-bridge repl verify --newest sales --root /dr/dumps --target sqlite:///replica.db
      hms-bridge repl verify /dr/dumps/c2FsZXM=/7f3c0d8e-…
      hms-bridge repl verify /dr/dumps/c2FsZXM=/7f3c0d8e-… --all --format jsonl
      hms-bridge repl verify --newest sales --root /dr/dumps
      hms-bridge repl verify --newest sales --files-from hdfs://nn:8020/warehouse
    """
    from hms_bridge.config.file_systems import file_systems

    if target_database is not None and target_url is None:
        raise click.UsageError("--into names a database of --target, which was not given")
    location = _dump(directory, newest, given_root, file_systems(settings), settings)
    with working("looking for files") as show:
        asked = _asked(asked_url, target_url, target_database, settings)
        report = _verified(location, settings, files_from, asked, show, is_quick=is_quick)
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
    location: str,
    settings: Settings,
    files_from: tuple[str, ...],
    asked: AskedPlaces,
    show: Callable[[str], None],
    *,
    is_quick: bool,
) -> VerifyReport:
    """A person is shown how many files were found where, as they are."""
    from hms_bridge.cli.repl_requests import dump_rules, look_roots
    from hms_bridge.config.file_systems import file_systems
    from hms_bridge.connect import archive_root
    from hms_bridge.repl.format.verify import verify_dump
    from hms_bridge.repl.load.known_places import KnownPlaces

    counts: Counter[str] = Counter()

    def looked(file: VerifiedFile) -> None:
        counts[file.place.value] += 1
        show(", ".join(f"{count} {place}" for place, count in counts.items()))

    resolve = file_systems(settings)
    roots = look_roots(settings, files_from=files_from)
    return verify_dump(
        resolve,
        location,
        retain_ms=settings.archive.retain_ms,
        own_archive=archive_root(settings),
        rules=dump_rules(settings),
        sources_for=KnownPlaces(resolve=resolve, roots=roots, asked=asked).within,
        is_quick=is_quick,
        on_looked=looked,
    )


def _asked(
    asked_url: str | None, target_url: str | None, target_database: str | None, settings: Settings
) -> AskedPlaces:
    """What the metastores that are at hand say of places, as far as they answer."""
    from hms_bridge.connect import connected, is_set_up, policies_of
    from hms_bridge.repl.load.known_places import asked_places

    def asked(database: str, refused: Sequence[RefusedPlace]) -> Iterator[str]:
        for named_url in dict.fromkeys((asked_url, target_url or asked_url)):
            try:
                url = metastore_of_verb(named_url, settings)
                if not is_set_up(url):
                    continue
                with connected(url, settings, is_created=False) as metastore:
                    places = places_of_source(metastore, settings)
                    ask = asked_places(policies_of(metastore), places, target_database)
                    yield from ask(database, refused)
            except HmsBridgeError as error:
                say(f"note: not asked where files are: {error}")

    return asked


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
    from hms_bridge.repl.at_target import TROUBLES

    states = [None] * len(report.files) if there is None else there.files
    for file, state in zip(report.files, states, strict=True):
        is_in_trouble = state is not None and state.state in TROUBLES
        if is_all or is_in_trouble or not file.is_found:
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
    from hms_bridge.repl.load.known_places import unlooked_files

    say(
        f"{counted(len(report.files), 'file')}, {size_text(report.size_bytes)}: "
        f"{report.count(Whereabouts.AT_SOURCE)} at source, "
        f"{report.count(Whereabouts.IN_CM)} in CM, {len(report.missing)} missing"
        + (f", {len(report.unlooked)} not looked for" if report.unlooked else "")
    )
    unlooked = unlooked_files(report)
    if unlooked is not None:
        say(unlooked.text(looked_at_too(unlooked.roots)))
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
        "lost because": None if file.is_found else file.reason,
    }
