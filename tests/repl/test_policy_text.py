"""Policies as TOML: what is written is read again, and nothing bad gets in."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from changemanager.masking import is_secret_name
from hms_bridge.errors import ConfigError, ReplError
from hms_bridge.model.replication import PolicySide, ReplicationPolicy
from hms_bridge.repl.cycles.policy_text import (
    checked,
    format_policies,
    parse_policies,
    with_environment,
)

TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip)
NAMES = st.text(string.ascii_lowercase + string.digits, min_size=1, max_size=20)
SIDES = st.builds(
    PolicySide,
    database=NAMES,
    metastore=st.none() | NAMES.map(lambda name: f"thrift://{name}:9083"),
    settings=st.dictionaries(TEXT.filter(lambda key: not is_secret_name(key)), TEXT),
)
POLICIES = st.lists(
    st.builds(
        ReplicationPolicy,
        name=NAMES,
        source=SIDES,
        target=SIDES,
        root=TEXT,
        is_paused=st.booleans(),
        included_tables=st.sampled_from(["t[0-9]+", "a|b", r"\w+"]),
        excluded_tables=st.sampled_from([None, r"t\d{2}"]),
    )
    | st.builds(ReplicationPolicy, name=NAMES, source=SIDES, target=SIDES, root=TEXT),
    min_size=1,
    max_size=3,
    unique_by=lambda policy: policy.name,
)

WRITTEN = """\
[[policy]]
name = "sales"
root = "hdfs://dr/dumps"

[policy.source]
metastore = "thrift://source:9083"
database = "sales"

[policy.source.settings]
"hive.repl.cmrootdir" = "hdfs://source/cm"

[policy.target]
database = "sales_dr"
"""


@given(POLICIES)
def test_what_is_written_is_read_again(policies: list[ReplicationPolicy]) -> None:
    assert parse_policies(format_policies(policies), "x.toml") == tuple(policies)


def test_a_policy_looks_like_this() -> None:
    (policy,) = parse_policies(WRITTEN, "x.toml")
    assert policy == ReplicationPolicy(
        name="sales",
        root="hdfs://dr/dumps",
        source=PolicySide(
            metastore="thrift://source:9083",
            database="sales",
            settings={"hive.repl.cmrootdir": "hdfs://source/cm"},
        ),
        target=PolicySide(database="sales_dr"),
    )
    assert format_policies([policy]) == WRITTEN


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("[[policy]]", "[[policy", "x.toml is no TOML"),
        ("[[policy]]", "[[policies]]", r"write a \[\[policy\]\] for each"),
        ("[[policy]]", "more = 1\n[[policy]]", "and nothing else"),
        ('name = "sales"\n', "", "policy 1: name is missing"),
        ('name = "sales"', "name = 7", "name is missing, or no text"),
        ('name = "sales"', 'name = "a b"', "no name of a policy"),
        ("root =", "roots =", "there is no roots; there are is_paused"),
        ("root =", "is_paused = 1\nroot =", "is_paused is true or false"),
        ("[policy.target]\n", "[policy.taget]\n", "there is no taget"),
        ('database = "sales_dr"', "", "policy 1, target: database is missing"),
        ('"hive.repl.cmrootdir" = "hdfs://source/cm"', "a = 1", "settings are texts"),
        (WRITTEN, WRITTEN + WRITTEN, "two policies are called sales"),
        ("thrift://source:9083", "postgresql://hive:secret@host/db", "password in clear text"),
        ("thrift://source:9083", "mysql://host/db?password=secret", "password in clear text"),
        ("hdfs://dr/dumps", "s3a://key:secret@bucket/dumps", "the directory of dumps has a pass"),
        ("hdfs://source/cm", "jdbc:mysql://h/x?user=u&password=p", "cmrootdir has a password in"),
        ("hive.repl.cmrootdir", "fs.s3a.session.token", "session.token has a password in clear"),
        ("hive.repl.cmrootdir", "javax.jdo.option.ConnectionPassword", "ConnectionPassword has a"),
        ("thrift://source:9083", "thrift://[source:9083", "is no URL"),
    ],
)
def test_what_is_wrong_is_named(old: str, new: str, why: str) -> None:
    assert old in WRITTEN
    with pytest.raises(ConfigError, match=why):
        parse_policies(WRITTEN.replace(old, new), "x.toml")


def test_what_is_no_name_of_a_database() -> None:
    with pytest.raises(ReplError, match="sales/x"):
        parse_policies(WRITTEN.replace('"sales_dr"', '"sales/x"'), "x.toml")


def test_a_password_comes_from_the_environment() -> None:
    url = "postgresql://hive:${SECRET}@host/db"
    jdbc = "jdbc:postgresql://host/db?user=hive&password=${SECRET}&ssl=true"
    policy = checked(
        ReplicationPolicy(
            name="sales",
            root="/dumps",
            source=PolicySide(
                metastore=url,
                database="SALES",
                settings={
                    "javax.jdo.option.ConnectionPassword": "${SECRET}",
                    "javax.jdo.option.ConnectionURL": jdbc,
                },
            ),
            target=PolicySide(database="sales"),
        )
    )
    assert (policy.source.metastore, policy.source.database) == (url, "sales")
    assert with_environment(url, {"SECRET": "x"}) == "postgresql://hive:x@host/db"
    with pytest.raises(ConfigError, match="asks for .*SECRET"):
        with_environment(url, {})


def test_patterns_of_tables_stand_as_hive_writes_them() -> None:
    text = WRITTEN.replace('dumps"\n', "dumps\"\ntables = \"'t[0-9]+'.'t2'\"\n", 1)
    (policy,) = parse_policies(text, "x.toml")
    assert (policy.included_tables, policy.excluded_tables) == ("t[0-9]+", "t2")
    assert policy.scope.text == "sales.'t[0-9]+'.'t2'"
    assert format_policies([policy]) == text


@pytest.mark.parametrize("patterns", ["t1", "''", "'('", "'a'.'b'.'c'"])
def test_patterns_that_are_none_are_refused(patterns: str) -> None:
    text = WRITTEN.replace('dumps"\n', f'dumps"\ntables = "{patterns}"\n', 1)
    with pytest.raises(ConfigError):
        parse_policies(text, "x.toml")


TARGET = '[policy.target]\ndatabase = "shop"\n'


def with_target(lines: str, settings: str = "") -> str:
    head = '[[policy]]\nname = "sales"\nroot = "/dumps"\n[policy.source]\ndatabase = "sales"\n'
    return f"{head}{TARGET}{lines}\n{settings}"


def test_a_target_says_where_files_come_from_and_who_made_the_dumps() -> None:
    text = with_target('files_from = ["/w", "hdfs://nn:8020/cm"]\nfrom_hive = true')
    (policy,) = parse_policies(text, "x.toml")
    assert policy.target.settings == {
        "hms.bridge.repl.load.roots": "/w,hdfs://nn:8020/cm",
        "hms.bridge.repl.load.from.hive": "true",
    }
    written = format_policies([policy])
    assert 'files_from = ["/w", "hdfs://nn:8020/cm"]\nfrom_hive = true\n' in written
    assert parse_policies(written, "x.toml") == (policy,)


@pytest.mark.parametrize(
    ("lines", "settings", "why"),
    [
        ('files_from = "/w"', "", "files_from is a list of directories"),
        ('files_from = ["/w", 3]', "", "files_from is a list of directories"),
        ('files_from = ["/w,/x"]', "", "has a comma"),
        ('from_hive = "yes"', "", "from_hive is true or false"),
        (
            'files_from = ["/w"]',
            '[policy.target.settings]\n"hms.bridge.repl.load.roots" = "/x"',
            "hms.bridge.repl.load.roots is among its settings, too",
        ),
    ],
)
def test_what_a_target_says_wrongly_is_named(lines: str, settings: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        parse_policies(with_target(lines, settings), "x.toml")


def test_a_source_says_nothing_of_that() -> None:
    text = with_target("").replace("[policy.target]", "from_hive = true\n[policy.target]")
    with pytest.raises(ConfigError, match="there is no from_hive"):
        parse_policies(text, "x.toml")
