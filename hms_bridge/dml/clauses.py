"""Closed by default: what a statement says and nobody here carries out is refused by name.

sqlglot knows more clauses than this program, and more with every version. So each statement lists
the parts of the tree that it heeds; any other part that is there refuses the statement.
"""

from __future__ import annotations

from sqlglot import exp
from sqlglot.errors import ErrorLevel, UnsupportedError

from hms_bridge.errors import DmlError

_ELSEWHERE = "Hive on this metastore does it"
_SUPPORTED = (
    "SELECT, INSERT INTO, UPDATE, DELETE, CREATE/DROP DATABASE and TABLE, USE, SHOW, DESCRIBE"
)
_SUBSTITUTES = {
    "show compactions": "hms-bridge compactions lists them",
    "show transactions": "hms-bridge txns lists them",
    "show locks": "hms-bridge locks lists them",
    "show create": f"DESCRIBE shows the columns; {_ELSEWHERE}",
    "abort transactions": "hms-bridge txns abort does it",
    "repl dump": "hms-bridge repl dump does it",
    "repl load": "hms-bridge repl load does it",
    "repl status": "hms-bridge repl status does it",
    "merge": "write it as UPDATE, DELETE and INSERT",
    "truncate": "DELETE FROM the table without WHERE removes all rows",
    "alter": f"hms-bridge compact queues a compaction; for the rest, {_ELSEWHERE}",
    "msck": f"hms-bridge table adopt registers a table's directories; for the rest, {_ELSEWHERE}",
    "analyze": _ELSEWHERE,
    "load": f"INSERT INTO takes rows; {_ELSEWHERE}",
    "start transaction": "each statement is a transaction of its own",
    "begin": "each statement is a transaction of its own",
    "commit": "each statement is a transaction of its own",
    "rollback": "each statement is a transaction of its own",
    "set": "give settings with --set KEY=VALUE, Spark's with --spark KEY=VALUE",
}


def refuse_more(tree: exp.Expr, *heeded: str, what: str | None = None) -> None:
    """Raises DmlError that names a part of ``tree`` that is there and not among ``heeded``.

    A clause that is passed over (DELETE … LIMIT 5) changes more than was meant.
    """
    for name, value in tree.args.items():
        if value and name not in heeded:
            clause = name.strip("_").replace("_", " ").upper()
            raise DmlError(
                f"{what or tree.key.upper()} with {clause} is not supported; leave it out"
            )


def spark_sql(tree: exp.Expr) -> str:
    """The text that Spark gets. Raises DmlError for what it has no words for: sqlglot would leave
    it out."""
    try:
        return tree.sql(dialect="spark", unsupported_level=ErrorLevel.RAISE)
    except UnsupportedError as error:
        raise DmlError(f"{str(error).splitlines()[0]}; leave it out") from error
    except (LookupError, TypeError, ValueError) as error:  # arguments that sqlglot cannot place
        raise DmlError(
            f"cannot write the statement for Spark: {error}; see the arguments of its functions"
        ) from error


def typed(tree: exp.Expr) -> str:
    """A part of a statement as a person types it, for messages; its kind if Hive has no words."""
    try:
        return tree.sql(dialect="hive", unsupported_level=ErrorLevel.RAISE)
    except UnsupportedError:
        return tree.key.upper()


def not_supported(text: str) -> DmlError:
    """For a statement that nothing here carries out: what does it instead."""
    words = text.split()
    start = " ".join(words[:3])
    for count in (2, 1):
        substitute = _SUBSTITUTES.get(" ".join(words[:count]).lower().rstrip(";"))
        if substitute is not None:
            return DmlError(f"'{start} …' is not supported; {substitute}")
    return DmlError(f"'{start} …' is not supported; supported are {_SUPPORTED}")
