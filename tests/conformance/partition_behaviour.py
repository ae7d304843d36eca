"""What every metastore does with partitions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hms_bridge.errors import (
    AlreadyExistsError,
    InvalidObjectError,
    InvalidOperationError,
    MetaError,
    NoSuchObjectError,
)
from hms_bridge.metastore import Metastore
from tests.conformance.objects import DS, DS_HR, new_database, new_table, partition

NAMES = ("ds=2024-01-01/hr=1", "ds=2024-01-01/hr=10", "ds=2024-01-01/hr=2", "ds=2024-01-02/hr=1")


class PartitionBehaviour:
    """Inherit through MetastoreBehaviour, and give the fixture `metastore`."""

    def _table(self, metastore: Metastore) -> str:
        name = new_database(metastore)
        new_table(metastore, name, partition_columns=DS_HR)
        values = [name.replace("ds=", "").replace("hr=", "").split("/") for name in NAMES]
        metastore.add_partitions(name, "t", [partition(name, "t", *one) for one in values])
        return name

    def test_partitions_are_listed_by_name(self, metastore: Metastore) -> None:
        name = self._table(metastore)
        assert metastore.get_partition_names(name, "t") == NAMES
        assert metastore.get_partition_names(name, "t", 2) == NAMES[:2]
        assert metastore.get_partition_names(name, "t", 0) == ()
        values = [one.values for one in metastore.get_partitions(name, "t")]
        assert values == [("2024-01-01", "1"), ("2024-01-01", "10"), ("2024-01-01", "2"),
                          ("2024-01-02", "1")]  # fmt: skip
        assert len(metastore.get_partitions(name, "t", 3)) == 3

    def test_a_partition_lies_below_its_table(self, metastore: Metastore) -> None:
        name = self._table(metastore)
        found = metastore.get_partition(name, "t", ["2024-01-02", "1"])
        table = metastore.get_table(name, "t")
        assert found.storage.location == f"{table.storage.location}/ds=2024-01-02/hr=1"
        assert found.create_time > 0
        assert int(found.parameters["transient_lastDdlTime"]) > 0

    def test_values_that_cannot_stand_in_a_path_are_escaped(self, metastore: Metastore) -> None:
        name = new_database(metastore)
        new_table(metastore, name, partition_columns=DS)
        for value in ("a/b:c=d%", "blank äö", ""):
            (added,) = metastore.add_partitions(name, "t", [partition(name, "t", value)])
            assert metastore.get_partition(name, "t", [value]).values == (value,)
            assert added.storage.location is not None
        assert metastore.get_partition_names(name, "t") == (
            "ds=__HIVE_DEFAULT_PARTITION__", "ds=a%2Fb%3Ac%3Dd%25", "ds=blank äö",
        )  # fmt: skip

    def test_existing_partitions_are_refused_or_skipped(self, metastore: Metastore) -> None:
        name = self._table(metastore)
        both = [partition(name, "t", "2024-01-02", "1"), partition(name, "t", "2024-01-03", "1")]
        with pytest.raises(AlreadyExistsError):
            metastore.add_partitions(name, "t", both)
        assert metastore.get_partition_names(name, "t") == NAMES
        added = metastore.add_partitions(name, "t", both, is_if_not_exists=True)
        assert [one.values for one in added] == [("2024-01-03", "1")]

    def test_wrong_values_are_refused(self, metastore: Metastore) -> None:
        name = self._table(metastore)
        for values in (("only",), ("a", "b", "c")):
            with pytest.raises((MetaError, InvalidObjectError)):
                metastore.add_partitions(name, "t", [partition(name, "t", *values)])
        twice = [partition(name, "t", "x", "1")] * 2
        with pytest.raises((MetaError, InvalidObjectError, AlreadyExistsError)):
            metastore.add_partitions(name, "t", twice)
        assert metastore.get_partition_names(name, "t") == NAMES

    def test_partitions_need_a_table(self, metastore: Metastore) -> None:
        name = new_database(metastore)
        with pytest.raises((NoSuchObjectError, InvalidObjectError)):
            metastore.add_partitions(name, "none", [partition(name, "none", "x")])
        with pytest.raises(NoSuchObjectError):
            metastore.get_partition(name, "none", ["x"])

    def test_an_unknown_partition_is_refused(self, metastore: Metastore) -> None:
        name = self._table(metastore)
        with pytest.raises(NoSuchObjectError):
            metastore.get_partition(name, "t", ["none", "1"])

    def test_partitions_by_names(self, metastore: Metastore) -> None:
        name = self._table(metastore)
        found = metastore.get_partitions_by_names(name, "t", [NAMES[3], "ds=none/hr=1", NAMES[0]])
        assert {one.values for one in found} == {("2024-01-01", "1"), ("2024-01-02", "1")}
        other_case = NAMES[0].replace("ds=", "DS=")
        assert list(metastore.get_partitions_by_names(name, "t", [other_case])) == []

    def test_partitions_by_some_values(self, metastore: Metastore) -> None:
        name = self._table(metastore)

        def found(*prefix: str) -> int:
            return len(metastore.get_partitions_by_values(name, "t", list(prefix)))

        assert (found("2024-01-01"), found("", "1"), found("2024-01-01", "2")) == (3, 2, 1)
        assert (found("", ""), found("none")) == (4, 0)

    def test_partitions_by_filter(self, metastore: Metastore) -> None:
        name = self._table(metastore)

        def found(text: str) -> int:
            return len(metastore.get_partitions_by_filter(name, "t", text))

        assert found("ds = '2024-01-01'") == 3
        assert found('ds = "2024-01-01" and hr = 1') == 1
        assert found("hr > 1") == 2
        assert found("hr between 1 and 2") == 3
        assert found("ds != '2024-01-01' or hr = 10") == 2
        assert found("ds like '2024-01%'") == 4
        assert found("(hr = 1 or hr = 2) and ds <> '2024-01-02'") == 2
        assert found("") == 4
        assert len(metastore.get_partitions_by_filter(name, "t", "hr = 1", 1)) == 1

    def test_a_bad_filter_is_refused(self, metastore: Metastore) -> None:
        name = self._table(metastore)
        for text in ("ds =", "name = 'x'", "hr = '1'", "(ds = 'a'"):
            with pytest.raises(MetaError):
                metastore.get_partitions_by_filter(name, "t", text)

    def test_altering_partitions_replaces_them(self, metastore: Metastore) -> None:
        name = self._table(metastore)
        found = metastore.get_partitions_by_names(name, "t", NAMES[:2])
        metastore.alter_partitions(
            name, "t", [replace(one, parameters={**one.parameters, "k": "v"}) for one in found]
        )
        changed = metastore.get_partitions_by_names(name, "t", NAMES[:2])
        assert [one.parameters["k"] for one in changed] == ["v", "v"]
        assert "k" not in metastore.get_partition(name, "t", ["2024-01-02", "1"]).parameters

    def test_altering_an_unknown_partition_changes_nothing(self, metastore: Metastore) -> None:
        name = self._table(metastore)
        known = metastore.get_partition(name, "t", ["2024-01-01", "1"])
        changed = replace(known, parameters={**known.parameters, "k": "v"})
        with pytest.raises((NoSuchObjectError, InvalidOperationError)):
            metastore.alter_partitions(name, "t", [changed, partition(name, "t", "none", "1")])
        assert "k" not in metastore.get_partition(name, "t", ["2024-01-01", "1"]).parameters

    def test_partitions_are_dropped_all_or_none(self, metastore: Metastore) -> None:
        name = self._table(metastore)
        with pytest.raises(NoSuchObjectError):
            metastore.drop_partitions(name, "t", [NAMES[0], "ds=none/hr=1"])
        assert metastore.get_partition_names(name, "t") == NAMES
        metastore.drop_partitions(name, "t", [NAMES[0], "ds=none/hr=1"], is_if_exists=True)
        metastore.drop_partitions(name, "t", [NAMES[1]])
        assert metastore.get_partition_names(name, "t") == NAMES[2:]

    def test_many_partitions(self, metastore: Metastore) -> None:
        name = new_database(metastore)
        new_table(metastore, name, partition_columns=DS)
        many = [partition(name, "t", f"{number:05d}") for number in range(1200)]
        assert len(metastore.add_partitions(name, "t", many)) == 1200
        assert len(metastore.get_partitions(name, "t")) == 1200
        assert len(metastore.get_partitions_by_filter(name, "t", "ds >= '01000'")) == 200
