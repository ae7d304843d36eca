"""Verbs of `repl` that are given a wrong database, policy, directory, archive or URL: a line that
says what is not there, and what to do; never silence, never a bare error of the metastore."""

from __future__ import annotations

import pytest

from tests.support.program import Answer, Program

STORE = ("--metastore", "sqlite:///dr.db")


@pytest.fixture
def sides(program: Program) -> Program:
    """A source with database `default`, and a metastore for the replica, where policies are kept:
    `sales`, which has not run yet, and `gone`, whose source has no such database."""
    program.ok("schema", "init", "--database", "sqlite:///dr.db")
    for policy, database in (("sales", "default"), ("gone", "shop")):
        program.ok(
            "repl", "policy", "add", policy, database, "--source", program.url,
            "--into", f"{policy}_dr", "--source-later", *STORE,
        )  # fmt: skip
    return program


def refused(answer: Answer, *texts: str) -> None:
    assert answer.exit_code == 1, (answer.out, answer.err)
    for text in texts:
        assert text in answer.err
    for bare in ("Traceback", "unexpected", "error: database hive."):
        assert bare not in answer.err


NO_REPLICA = ("no database sales_dr, so policy sales has no replica yet", "'repl run sales' brings")
NO_SUCH_DATABASE = ("there is no database nosuch; see hms-bridge sql -e 'SHOW DATABASES'",)
NO_POLICY = ("there is no policy nosuch; there are: gone, sales",)
NOT_REACHED = ("no metastore answers at thrift://127.0.0.1:1",)
NO_DUMP = ("no finished dump of default below", "/no/such", "--root")

AT_THE_REPLICA = {
    "promote": (("promote", "sales"), NO_REPLICA),
    "promote, planned": (("promote", "sales", "--planned", "--dry-run"), NO_REPLICA),
    "promote, lost": (("promote", "sales", "--source-is-lost"), NO_REPLICA),
    "failback": (("failback", "sales"), NO_REPLICA),
    "failback, to be seen": (("failback", "sales", "--dry-run"), NO_REPLICA),
    "promote, of no source": (("promote", "gone"), ("has no replica yet",)),
    "cancel, of no source": (
        ("promote", "gone", "--cancel"),
        ("(its metastore has no database shop)", "'repl policy show gone'"),
    ),
    "promote, unknown": (("promote", "nosuch"), (*NO_POLICY, "'repl policy add nosuch")),
    "failback, unknown": (("failback", "nosuch"), (*NO_POLICY, "'repl policy add nosuch")),
    "repair, unknown": (("repair", "nosuch"), NO_POLICY),
    "run, unknown": (("run", "nosuch"), NO_POLICY),
    "history, unknown": (("history", "nosuch"), NO_POLICY),
    "policy show": (("policy", "show", "nosuch"), NO_POLICY),
    "policy pause": (("policy", "pause", "nosuch"), NO_POLICY),
    "policy remove": (("policy", "remove", "nosuch"), NO_POLICY),
    "policy export": (("policy", "export", "nosuch"), NO_POLICY),
    "policy of no metastore": (
        ("repair", "gone"),
        ("there is no database shop",),
    ),
    "open": (("open", "nosuch", "--writes"), NO_SUCH_DATABASE),
    "end": (("end", "nosuch"), NO_SUCH_DATABASE),
    "status": (
        ("status", "nosuch"),
        ("no nosuch in the replica's metastore, and no dump of it below", "look at the name"),
    ),
    "load": (("load", "default", "--root", "/no/such"), NO_DUMP),
    "load into": (
        ("load", "default", "--into", "a/b"),
        ("'a/b' is no name of a database; give its name alone",),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", AT_THE_REPLICA)
def test_at_the_replica(sides: Program, name: str) -> None:
    words, texts = AT_THE_REPLICA[name]
    refused(sides.run("repl", *words, *STORE), *texts)


AT_THE_SOURCE = {
    "dump": (("dump", "nosuch"), NO_SUCH_DATABASE),
    "discard": (
        ("dump", "nosuch", "--discard"),
        ("there is no dump of nosuch below", "nothing to discard; look at the name and at --root"),
    ),
    "expire": (("expire", "nosuch"), NO_SUCH_DATABASE),
    "dump, root": (("dump", "default", "--root", "s4://x"), ("that scheme is not served",)),
    "dump, archive": (
        ("dump", "default", "--set", "hive.repl.cmrootdir=s4://x"),
        ("that scheme is not served",),
    ),
    "dump, name": (("dump", "a/b"), ("'a/b' is no name of a database; give its name alone",)),
    "verify": (("verify", "/no/such"), ("/no/such",)),
    "verify, newest": (("verify", "--newest", "default", "--root", "/no/such"), ("/no/such",)),
    "verify, URL": (("verify", "/no/such", "--target", "bad"), ("/no/such",)),
    "drill": (("drill", "nosuch", "--source", "sqlite:///metastore.db"), NO_SUCH_DATABASE),
    "drill, root": (
        ("drill", "default", "--source", "sqlite:///metastore.db", "--root", "/no/such"),
        ("no finished dump of default below /no/such", "run repl dump first"),
    ),
    "compare": (
        ("compare", "nosuch", "--source", "sqlite:///dr.db"),
        ("--source: there is no database nosuch",),
    ),
    "compare, URL": (("compare", "default", "--source", "thrift://127.0.0.1:1"), NOT_REACHED),
    "status, URL": (("status", "default", "--source", "thrift://127.0.0.1:1"), NOT_REACHED),
    "status, both": (
        ("status", "nosuch", "--source", "sqlite:///dr.db"),
        ("there is no nosuch in the source and no nosuch in the replica's metastore",),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", AT_THE_SOURCE)
def test_at_the_source(sides: Program, name: str) -> None:
    words, texts = AT_THE_SOURCE[name]
    refused(sides.run("repl", *words), *texts)


def test_a_monitor_takes_it_for_unknown(sides: Program) -> None:
    """Exit code 3 of a plugin: 1 would be a warning."""
    answer = sides.run("repl", "lag", "nosuch", "--source", sides.url, *STORE)
    assert answer.exit_code == 3
    assert "nothing is known of database nosuch" in answer.out


def test_a_replica_that_is_looked_for_in_the_wrong_place(sides: Program) -> None:
    """Its dumps say that it has everything, so nothing else would tell."""
    sides.ok("repl", "run", "sales", *STORE)
    asked = ("repl", "status", "default", "--source", sides.url, *STORE)
    sides.ok(*asked, "--into", "sales_dr")
    refused(sides.run(*asked, "--into", "typo"), "there is no database typo", "look at --metastore")


def test_nothing_to_expire_is_told_with_the_place(sides: Program) -> None:
    answer = sides.ok("repl", "expire", "default", "--root", "/no/such")
    assert "there is no dump of default below /no/such" in answer.err


def test_a_source_whose_database_is_gone_is_a_lost_one(sides: Program) -> None:
    """Else nobody could promote its replica: the source's metastore answers."""
    sides.ok("repl", "run", "sales", *STORE)
    moved = ("policy", "add", "sales", "nosuch", "--source", sides.url, "--into", "sales_dr")
    sides.ok("repl", *moved, "--replace", "--source-later", *STORE)
    refused(
        sides.run("repl", "promote", "sales", *STORE),
        "cannot be reached (its metastore has no database nosuch)", "--source-is-lost",
    )  # fmt: skip
    sides.ok("repl", "promote", "sales", "--source-is-lost", "--dry-run", *STORE)
