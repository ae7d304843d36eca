"""Steps of an upgrade that change rows: what Hive's own scripts change, and transaction ids."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlalchemy import Dialect

from hms_bridge.backend.schema.steps import quoted

LOG_SEQUENCE = "org.apache.hadoop.hive.metastore.model.MNotificationLog"
WRITE_LOG_SEQUENCE = "org.apache.hadoop.hive.metastore.model.MTxnWriteNotificationLog"
"""Hive's listener refuses to log while its rows of SEQUENCE_TABLE are missing."""

_CONTRIB = "org.apache.hadoop.hive.contrib.serde2.MultiDelimitSerDe"
_SERDE = "org.apache.hadoop.hive.serde2.MultiDelimitSerDe"
_KUDU = "org.apache.hadoop.hive.kudu.Kudu"


@dataclass(frozen=True, slots=True)
class NumberTxns:
    """Let TXNS give transaction ids by itself, from the number on that the old counter would give.

    Hive's own upgrade goes on from the greatest id that still has a row (HIVE-23048), which gives
    ids of transactions again that were committed and forgotten; those have write ids.
    """

    is_generating: bool
    """Whether the column has its generator already: an upgrade was cut off."""

    @property
    def what(self) -> str:
        """What is changed."""
        return "table TXNS: give ids from the next on of the old counter"

    def statements(self, dialect: Dialect) -> Iterator[str]:
        """The last id that was given gets a committed row, if it has none; then the generator."""
        q = quoted(dialect)
        last = f"(SELECT COALESCE(MAX({q('TXN_LOCK')}), 1) - 1 FROM {q('TXN_LOCK_TBL')})"
        yield (
            f"INSERT INTO {q('TXNS')} ({q('TXN_ID')}, {q('TXN_STATE')}, {q('TXN_STARTED')}, "
            f"{q('TXN_LAST_HEARTBEAT')}, {q('TXN_USER')}, {q('TXN_HOST')}) "
            f"SELECT given.id, 'c', 0, 0, '', '' FROM (SELECT {last} AS id) given "
            f"WHERE NOT EXISTS (SELECT 1 FROM {q('TXNS')} old WHERE old.{q('TXN_ID')} >= given.id)"
        )
        if dialect.name == "postgresql":
            yield from self._with_a_sequence(dialect)
        elif dialect.name in ("mysql", "mariadb") and not self.is_generating:
            yield "SET FOREIGN_KEY_CHECKS = 0"
            yield f"ALTER TABLE {q('TXNS')} MODIFY {q('TXN_ID')} BIGINT NOT NULL AUTO_INCREMENT"
            yield "SET FOREIGN_KEY_CHECKS = 1"

    def _with_a_sequence(self, dialect: Dialect) -> Iterator[str]:
        q = quoted(dialect)
        sequence = "TXNS_TXN_ID_SEQ"
        if not self.is_generating:
            yield (f"CREATE SEQUENCE {q(sequence)} MINVALUE 0 OWNED BY {q('TXNS')}.{q('TXN_ID')}")
            yield (
                f"ALTER TABLE {q('TXNS')} ALTER {q('TXN_ID')} SET DEFAULT nextval('{q(sequence)}')"
            )
        yield f"SELECT setval('{q(sequence)}', (SELECT MAX({q('TXN_ID')}) FROM {q('TXNS')}))"


@dataclass(frozen=True, slots=True)
class AddSequence:
    """A row of SEQUENCE_TABLE that begins with 1, if there is none."""

    name: str

    @property
    def what(self) -> str:
        """What is changed."""
        return f"table SEQUENCE_TABLE: a row for {self.name.rpartition('.')[2]}"

    def statements(self, dialect: Dialect) -> Iterator[str]:
        """One."""
        q = quoted(dialect)
        yield (
            f"INSERT INTO {q('SEQUENCE_TABLE')} ({q('SEQUENCE_NAME')}, {q('NEXT_VAL')}) "
            f"SELECT wanted.name, 1 FROM (SELECT '{self.name}' AS name) wanted "
            f"WHERE NOT EXISTS (SELECT 1 FROM {q('SEQUENCE_TABLE')} old "
            f"WHERE old.{q('SEQUENCE_NAME')} = wanted.name)"
        )


@dataclass(frozen=True, slots=True)
class RenameClasses:
    """Classes of Hive's that were moved: MultiDelimitSerDe (HIVE-24770), those of Kudu's tables
    (HIVE-27457)."""

    @property
    def what(self) -> str:
        """What is changed."""
        return "tables SERDES, SDS: names of classes that Hive 4 has moved"

    def statements(self, dialect: Dialect) -> Iterator[str]:
        """Rows that have the new names already stay."""
        q = quoted(dialect)
        yield (
            f"UPDATE {q('SERDES')} SET {q('SLIB')} = '{_SERDE}' WHERE {q('SLIB')} = '{_CONTRIB}'"
        )
        tables = (
            f"SELECT t.{q('SD_ID')} FROM {q('TBLS')} t JOIN {q('TABLE_PARAMS')} p "
            f"ON t.{q('TBL_ID')} = p.{q('TBL_ID')} WHERE p.{q('PARAM_VALUE')} LIKE "
        )
        kudu = f"{tables}'%KuduStorageHandler%'"
        yield (
            f"UPDATE {q('SDS')} SET {q('INPUT_FORMAT')} = '{_KUDU}InputFormat', "
            f"{q('OUTPUT_FORMAT')} = '{_KUDU}OutputFormat' WHERE {q('SD_ID')} IN ({kudu})"
        )
        yield (
            f"UPDATE {q('SERDES')} SET {q('SLIB')} = '{_KUDU}SerDe' WHERE {q('SERDE_ID')} IN "
            f"(SELECT s.{q('SERDE_ID')} FROM {q('SDS')} s WHERE s.{q('SD_ID')} IN ({kudu}))"
        )
