"""One masker: what it hides, and what it leaves."""

from __future__ import annotations

import json
import time

import pytest

from changemanager.masking import (
    is_secret_name,
    masked_message,
    masked_raw,
    masked_text,
    masked_url,
    typable_url,
)

HINT = "write postgresql://USER:PASSWORD@HOST/DATABASE"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://u:s3cret@h/db", "postgresql://u:***@h/db"),
        ("postgresql://u:s3@cr/et:x@h/db", "postgresql://u:***@h/db"),
        ("postgresql://h/db?user=u&password=s3cret&x=y", "postgresql://h/db?user=u&password=***&x=y"),
        ("postgresql://h/db?sslpassword=s3cret", "postgresql://h/db?sslpassword=***"),
        ("jdbc:mysql://hive:s3cret@db/hive", "jdbc:mysql://hive:***@db/hive"),
        ("jdbc:mysql://address=(host=a)(password=s3cret)/h", "jdbc:mysql://address=(host=a)(password=***)/h"),
        ("thrift://u:s3cret@h:9083", "thrift://u:***@h:9083"),
        ("u:s3cret@h/db", "u:***@h/db"),
        ("http://h/hook?access_token=s3cret", "http://h/hook?access_token=***"),
        ("mysql//u:s3cret@h/db", "mysql//u:***@h/db"),
        ("postgresql://u:s3cret", "postgresql://u:***"),
        ("postgresql://u:s3cret/db", "postgresql://u:***/db"),
        ("jdbc:sqlserver://h:1433;databaseName=x", "jdbc:sqlserver://h:1433;databaseName=x"),
        ("mysql://h1:3306,h2:3306/db", "mysql://h1:3306,h2:3306/db"),
        ("sqlite:///a:b@c.db", "sqlite:///a:b@c.db"),
        ("postgresql://hive@h:5432/m", "postgresql://hive@h:5432/m"),
    ],
)  # fmt: skip
def test_a_url_is_shown_without_its_secrets(url: str, shown: str) -> None:
    assert masked_url(url) == shown
    assert "s3" not in typable_url(url)


@pytest.mark.parametrize(
    ("url", "typed"),
    [
        ("postgresql://u:s3cret@h/db", "postgresql://u@h/db"),
        ("u:s3cret@h/db", "u@h/db"),
        ("postgresql://u:s3cret", "postgresql://u"),
        ("postgresql://u:s3cret/db", "postgresql://u/db"),
        ("postgresql://hive@h:5432/m", "postgresql://hive@h:5432/m"),
    ],
)
def test_a_url_that_is_to_be_typed_signs_in_without_a_mask(url: str, typed: str) -> None:
    assert typable_url(url) == typed


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("no thrift://u:s3@cret@h:1, but", "no thrift://u:***@h:1, but"),
        ("'foo://h?password=s3cret' is", "'foo://h?password=***' is"),
        (HINT, HINT),
        ("Authorization: Bearer s3cret.jwt-x, h", "Authorization: Bearer ***, h"),
        ("hdfs://nn:8020/user/a@b is gone", "hdfs://nn:8020/user/a@b is gone"),
        ("thrift://a:1,thrift://b:2 of x@y", "thrift://a:1,thrift://b:2 of x@y"),
    ],
)  # fmt: skip
def test_a_sentence_keeps_all_else(text: str, shown: str) -> None:
    assert masked_text(text) == shown


def test_names_of_secrets() -> None:
    secret = "fs.s3a.secret.key fs.s3a.access.key api_key fs.s3.awsAccessKeyId MYSQL_PWD PGPASSWORD"
    secret += " Authorization hive.sql.dbcp.password AWS_SESSION_TOKEN"
    for name in secret.split():
        assert is_secret_name(name), name
    plain = "PWD OLDPWD hive.sql.dbcp.username transactional hadoop.security.authorization"
    for name in plain.split():
        assert not is_secret_name(name), name


def test_properties_of_objects_in_a_message_are_masked_and_partitions_are_not() -> None:
    table = {"9": {"map": ["str", "str", 2, {"hive.sql.dbcp.password": "s3cret", "a": 'b"c'}]},
             "7": {"str": "jdbc:mysql://u:s3cret@h/d"}}  # fmt: skip
    message = {"tableObjJson": json.dumps(table), "partitions": [{"token": "2024"}], "n": 1.5}
    shown = masked_message(message)
    assert "s3cret" not in json.dumps(shown)
    assert shown["partitions"] == [{"token": "2024"}]
    inner = json.loads(shown["tableObjJson"])
    assert inner["9"]["map"][3] == {"hive.sql.dbcp.password": "***", "a": 'b"c'}
    plain = {"tableObjJson": '{"1":  {"str": "t"} }'}
    assert masked_message(plain) == plain


def test_what_is_no_json_is_masked_as_a_text() -> None:
    pair = r'{"tableObjJson":"{\"fs.s3a.secret.key\":\"s3cret\",\"a\":\"b\"}"'
    assert masked_raw(pair) == pair.replace("s3cret", "***")


def test_no_text_of_a_client_takes_long() -> None:
    for text in ("://a:" * 40_000, "\\" * 200_000, '"' * 200_000, "?pass" * 40_000,
                 '"token' * 40_000, "a" * 200_000):  # fmt: skip
        began = time.perf_counter()
        masked_raw(text)
        assert time.perf_counter() - began < 2
