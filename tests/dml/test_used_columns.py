"""Which columns a query reads: those it names, all where that cannot be known."""

from __future__ import annotations

import pytest

from hms_bridge.dml.parse import parse_statement
from hms_bridge.dml.plan import plan_query, plan_write
from hms_bridge.dml.statement import NameAsWritten, Select
from hms_bridge.model.catalog import Column, Storage, Table

ALL = "a b c s p"
OTHER = "a z"


def table(database: str, name: str, columns: str, keys: str = "") -> Table:
    return Table(
        name=name,
        database_name=database,
        storage=Storage(
            columns=tuple(
                Column(name=one, type="struct<f:int>" if one == "s" else "int")
                for one in columns.split()
            )
        ),
        partition_columns=tuple(Column(name=one, type="int") for one in keys.split()),
        parameters={"transactional": "true"},
    )


TABLES = {
    NameAsWritten(database=None, name="t"): table("d", "t", "a b c s", "p"),
    NameAsWritten(database="d", name="t"): table("d", "t", "a b c s", "p"),
    NameAsWritten(database=None, name="u"): table("d", "u", OTHER),
}


def read(text: str) -> dict[str, str]:
    """Columns by table, with ``+`` where row identifiers are read."""
    statement = parse_statement(text)
    if isinstance(statement, Select):
        sources = plan_query(statement, TABLES).sources
    else:
        sources = plan_write(statement, TABLES).sources  # type: ignore[arg-type]
    return {
        source.table.name: " ".join(c.name for c in source.columns) + "+" * source.has_row_ids
        for source in sources
    }


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("select count(*) from t", {"t": ""}),
        ("select 1 from t", {"t": ""}),
        ("select * from t", {"t": ALL}),
        ("select x.* from t x", {"t": ALL}),
        ("select d.t.* from d.t", {"t": ALL}),
        ("select count(distinct *) from t", {"t": ALL}),
        ("select A + 1 as b from t where p = 1", {"t": "a p"}),
        ("select a as b, b from t", {"t": "a b"}),
        ("select a from t order by b", {"t": "a b"}),
        ("select a, count(*) from t group by a having max(c) > 1", {"t": "a c"}),
        ("select s.f from t", {"t": "s"}),
        ("select t.s.f, d.t.b from d.t", {"t": "b s"}),
        ("select x.a from t x join u y on x.a = y.a", {"t": "a", "u": "a"}),
        ("select x.b from t x join u y on x.b = y.z", {"t": "b", "u": "z"}),
        ("select b from t join u using (a)", {"t": "a b", "u": "a"}),
        ("select 1 from t natural join u", {"t": ALL, "u": OTHER}),
        (
            "select t.a from t where exists (select 1 from u where u.z = t.b)",
            {"t": "a b", "u": "z"},
        ),
        ("select a from t where b in (select * from u)", {"t": "a b", "u": OTHER}),
        ("select q.a from (select * from t) q", {"t": ALL}),
        ("with q as (select a from t) select * from q", {"t": "a"}),
        ("select m from t as x(m, n, o, q, r)", {"t": ALL}),
        ("select e from t lateral view explode(array(b)) v as e", {"t": "b"}),
        ("select sum(c) over (partition by a order by b) from t", {"t": "a b c"}),
        ("select transform(array(a), x -> x + b) from t", {"t": "a b"}),
        ("select a from t union all select z from u", {"t": "a", "u": "z"}),
        ("select struct(*) from t", {"t": ALL}),
        ("select named_struct('k', c) from t", {"t": "c"}),
        ("select row__id, a from t", {"t": "a+"}),
        ("select t.row__id.rowid from t join u on t.a = u.a", {"t": "a+", "u": "a"}),
        ("delete from t where b = 1", {"t": "b+"}),
        ("delete from t where a in (select z from u)", {"t": "a+", "u": "z"}),
        ("update t set b = c where a = 1", {"t": "a c s+"}),
        ("insert into t select a, a, a, s, 1 from t", {"t": "a s"}),
    ],
)
def test_what_is_read(text: str, columns: dict[str, str]) -> None:
    assert read(text) == columns


def test_names_of_views_do_not_collide() -> None:
    tables = {
        NameAsWritten(database="a__b", name="c"): table("a__b", "c", "x"),
        NameAsWritten(database="a", name="b__c"): table("a", "b__c", "x"),
    }
    statement = parse_statement("select * from a__b.c join a.b__c")
    assert isinstance(statement, Select)
    assert len({source.view_name for source in plan_query(statement, tables).sources}) == 2
