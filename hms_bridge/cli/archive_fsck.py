"""``hms-bridge cm fsck``: does the manifest know what is in the archive, and the reverse?"""

from __future__ import annotations

import click

from hms_bridge.cli.logs import logging_options
from hms_bridge.cli.options import database_option, format_option, settings_options
from hms_bridge.cli.output import print_rows, say
from hms_bridge.cli.progress import working
from hms_bridge.config.settings import Settings
from hms_bridge.model.counted import counted

_COLUMNS = ("name", "finding", "detail", "what", "size")


@click.command()
@click.option(
    "--repair", "is_repairing", is_flag=True, help="Mend it; without it nothing is changed."
)
@click.option(
    "--content",
    "is_content_read",
    is_flag=True,
    help="Read every file, and compare it with the checksum in its name.",
)
@database_option
@format_option
@logging_options
@settings_options
def fsck(
    is_repairing: bool,
    is_content_read: bool,
    metastore_url: str,
    output_format: str,
    settings: Settings,
) -> None:
    """Compare the manifest with the files of the archive; --repair brings them together.

    For an archive that a Hive filled, that was moved or restored, or whose manifest was lost with
    its database: rows are made from names, times and Hive's attribute original-loc. No file is
    ever deleted, and no retention shortened. Exit code 1 if something is left to do.

    \b
    Examples:
      hms-bridge cm fsck
      hms-bridge cm fsck --content --format jsonl
      hms-bridge cm fsck --repair
    """
    from changemanager.fsck import Fsck
    from hms_bridge.connect import connected_locally

    with (
        working("comparing manifest and archive"),
        connected_locally(metastore_url, settings, is_created=False) as store,
    ):
        job = Fsck(store.archive(), store.manifest, store.clock)
        findings = job.plan(is_content_read=is_content_read)
        mended = job.repair(findings) if is_repairing else ()
    rows = []
    for finding in findings:
        what = "for you to check" if not finding.kind.is_repaired else "would be repaired"
        if is_repairing and finding.kind.is_repaired:
            what = "repaired" if finding in mended else "left: it changed meanwhile"
        entry = finding.wanted or finding.seen
        rows.append(
            {
                "name": finding.name,
                "finding": finding.kind.value,
                "detail": finding.detail,
                "what": what,
                "size": entry.size_bytes if entry else None,
            }
        )
    print_rows(rows, _COLUMNS, output_format)
    say(f"{counted(len(findings), 'finding')}, {len(mended)} repaired")
    if len(mended) < len(findings):
        raise SystemExit(1)
