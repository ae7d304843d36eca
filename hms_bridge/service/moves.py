"""Who moves a directory is alone in its table: workers and cleaners would take for empty what is
under way."""

from __future__ import annotations

from hms_bridge.archive import file_tasks, leases
from hms_bridge.archive.file_tasks import FileTask
from hms_bridge.backend.connection import Connection
from hms_bridge.backend.work import Work
from hms_bridge.cleaning_store import cleaning_lease
from hms_bridge.errors import MetaError
from hms_bridge.model.catalog import Table
from hms_bridge.model.ids import WriteId
from hms_bridge.txn import compaction_queue, write_ids


def begin(work: Work, task: FileTask) -> bool:
    """Write a move down and send the table's workers away; False, and no change, if somebody cleans
    the table.

    No entry of the table is handed to a worker until the task is done
    (compaction_queue.find_next_compaction).
    """
    connection, database, table = work.connection, task.context.database, task.context.table
    if database and table:
        name = cleaning_lease(database, table)
        holder = leases.owner_of(connection, name)
        others = file_tasks.find_moves(connection, database, table)
        is_of_move = holder is not None and holder in {other.id for other in others}
        if not is_of_move and not leases.take(connection, name, task.id, work.now_ms):
            return False
        compaction_queue.give_back_table(
            connection, database, table, f"{task.location} is moved by a rename"
        )
    file_tasks.add(work, [task])
    return True


def end(connection: Connection, task: FileTask) -> None:
    """Cleaners and other moves may come again, whoever has ended this one."""
    if task.context.database and task.context.table:
        leases.end(connection, cleaning_lease(task.context.database, task.context.table), task.id)


def require_no_new_writer(connection: Connection, table: Table, highest_before: WriteId) -> None:
    """Raises MetaError if somebody took a write id of the table while a directory of it was
    moved: what they write may lie at the old place, and be committed already."""
    if not table.is_in_txn_tables:
        return
    highest = write_ids.get_max_allocated_write_id(
        connection, table.database_name, table.name, is_locked=True
    )
    if highest != highest_before:
        raise MetaError(
            f"{table.full_name} was written to while a directory of it was moved (write id "
            f"{highest}); try again, or hold an exclusive lock on it meanwhile"
        )
