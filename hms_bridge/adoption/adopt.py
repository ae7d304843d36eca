"""Carries out an adoption: looks at a directory, and registers what the plan says."""

from __future__ import annotations

import functools
from typing import Any

from changemanager.location import Resolver
from hms_bridge.acid.listing import DirectoryListing
from hms_bridge.adoption.plan import AdoptionPlan, AdoptionRequest, RootFound, plan_adoption
from hms_bridge.errors import AcidFormatError, AlreadyExistsError, InvalidOperationError
from hms_bridge.metastore import Metastore
from hms_bridge.model.catalog import Column
from hms_bridge.model.ids import TxnId
from hms_bridge.model.txn import CommitTxnRequest, OpenTxnsRequest, TableWriteIdState
from hms_bridge.orc.acid_layout import acid_layout
from hms_bridge.orc.hive_types import hive_type_text
from hms_bridge.orc.tail import read_tail
from hms_bridge.rows.listing import find_acid_roots, list_acid_directory
from hms_bridge.rows.reader import has_raw_rows


def look(request: AdoptionRequest, resolver: Resolver) -> AdoptionPlan:
    """Read the directory and decide; nothing is changed.

    Raises AcidFormatError for what is no ACID table's directory, NotOrcError for a data file that
    is no ORC file.
    """
    place = resolver(request.location)
    fs = place.volume.fs
    if not fs.isdir(place.path):
        raise AcidFormatError("there is no such directory; check the path", request.location)
    roots = []
    for path in find_acid_roots(fs, place.path) or (place.path,):
        relative = path.rstrip("/")[len(place.path.rstrip("/")) :].strip("/")
        listing = list_acid_directory(fs, path, has_raw_rows=functools.partial(has_raw_rows, fs))
        roots.append(
            RootFound(
                path=relative,
                location=place.child(relative).uri,
                listing=listing,
                columns=_columns(fs, listing),
            )
        )
    return plan_adoption(request, roots)


def adopt(plan: AdoptionPlan, metastore: Metastore, *, user: str, host: str) -> None:
    """Register the table, its partitions and its write ids.

    Raises AlreadyExistsError if the table is there, InvalidOperationError if this metastore has
    transactions of its own under the numbers of the directory's compactions.
    """
    table = plan.table
    if table.name in metastore.get_tables(table.database_name, table.name):
        raise AlreadyExistsError(
            f"{table.full_name} is there already; choose another --name or drop it first"
        )
    _make_txns_known(plan, metastore, user, host)
    metastore.create_table(table)
    metastore.repl_table_write_id_state(
        TableWriteIdState(
            valid_write_ids=plan.write_ids.format(),
            user=user,
            host=host,
            database_name=table.database_name,
            table_name=table.name,
        )
    )
    if plan.partitions:
        metastore.add_partitions(table.database_name, table.name, plan.partitions)


def _make_txns_known(plan: AdoptionPlan, metastore: Metastore, user: str, host: str) -> None:
    """Directories ``…_v17`` are seen only by who knows transaction 17 as committed."""
    if not plan.visibility_txn_ids:
        return
    opened = metastore.get_open_txns(frozenset())
    foreign = {txn.id for txn in opened.txns} & set(plan.visibility_txn_ids)
    if foreign:
        raise InvalidOperationError(
            f"the directory has the output of compaction transaction {min(foreign)}, which is the "
            "number of an open or aborted transaction of this metastore; adopt into a new metastore"
        )
    highest = max(plan.visibility_txn_ids)
    if highest > opened.high_watermark:
        metastore.seed_txn_id(TxnId(highest))
        (txn_id,) = metastore.open_txns(OpenTxnsRequest(user=user, host=host, agent="adopt"))
        metastore.commit_txn(CommitTxnRequest(txn_id=txn_id))


def _columns(fs: Any, listing: DirectoryListing) -> tuple[Column, ...] | None:
    """The columns of the newest data file with rows of the table."""
    paths = [file.path for file in listing.originals]
    for directory in sorted(listing.directories, key=lambda one: one.name.max_write_id):
        if not directory.name.is_delete:
            paths += [file.path for file in directory.files if file.size_bytes]
    if not paths:
        return None
    schema = read_tail(fs, listing.full_path(paths[-1])).schema
    layout = acid_layout(schema)
    rows = schema if layout is None else layout.row_type
    return tuple(
        Column(name=name.lower(), type=hive_type_text(child))
        for name, child in zip(rows.names, rows.children, strict=True)
    )


def describe(plan: AdoptionPlan) -> dict[str, object]:
    """The plan for people."""
    table = plan.table
    return {
        "table": table.full_name,
        "location": table.storage.location,
        "columns": ", ".join(f"{c.name} {c.type}" for c in table.storage.columns),
        "partition columns": ", ".join(f"{c.name} {c.type}" for c in table.partition_columns),
        "partitions": len(plan.partitions),
        "write ids": plan.write_ids.format(),
        "compaction transactions": list(plan.visibility_txn_ids),
    }
