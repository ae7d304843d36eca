"""The database of a hive-site.xml, as Hive names it."""

from __future__ import annotations

import ssl
from dataclasses import replace

import pytest
from sqlalchemy import make_url

from changemanager.masking import masked_url
from hms_bridge.config.jdbc import (
    JdbcConnection,
    database_url,
    url_with_password,
)
from hms_bridge.errors import ConfigError

CA = ssl.get_default_verify_paths().cafile


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("jdbc:postgresql://db.example:5433/metastore", "postgresql+psycopg://db.example:5433/metastore"),
        ("jdbc:postgresql:///metastore", "postgresql+psycopg://localhost/metastore"),
        ("jdbc:postgresql://[::1]:5432/m", "postgresql+psycopg://[::1]:5432/m"),
        ("jdbc:postgresql://h/m?ssl=true", "postgresql+psycopg://h/m?sslmode=verify-full"),
        ("jdbc:postgresql://h/m?ssl=true&sslmode=require", "postgresql+psycopg://h/m?sslmode=require"),
        (
            "jdbc:postgresql://h/m?sslmode=verify-ca&sslrootcert=/etc/ca.pem&ApplicationName=hive",
            "postgresql+psycopg://h/m?sslmode=verify-ca&sslrootcert=%2Fetc%2Fca.pem&application_name=hive",
        ),
        (
            "jdbc:postgresql://h/m?currentSchema=hive&prepareThreshold=0",
            "postgresql+psycopg://h/m?options=-csearch_path%3Dhive",
        ),
        ("jdbc:mysql://h:3306/hive?createDatabaseIfNotExist=true&useSSL=false", "mysql+pymysql://h:3306/hive"),
        ("jdbc:mysql://h/hive?useSSL=true", "mysql+pymysql://h/hive?ssl_check_hostname=false"),
        (
            "jdbc:mariadb://h/hive?serverSslCert=/ca.pem&sslMode=verify-full&connectTimeout=5000",
            "mysql+pymysql://h/hive?ssl_ca=%2Fca.pem&ssl_check_hostname=true&connect_timeout=5",
        ),
        (
            "jdbc:mysql://h/hive?sslMode=VERIFY_CA",
            f"mysql+pymysql://h/hive?ssl_check_hostname=false&ssl_ca={str(CA).replace('/', '%2F')}",
        ),
    ],
)  # fmt: skip
def test_a_jdbc_url_becomes_one_of_ours(url: str, expected: str) -> None:
    if "VERIFY_CA" in url and CA is None:
        pytest.skip("this machine trusts nobody")
    found = database_url(JdbcConnection(url=url))
    assert found == expected
    assert make_url(found)


def test_user_and_password_may_hold_anything() -> None:
    connection = JdbcConnection(
        url="jdbc:postgresql://h/m?user=other&password=wrong", user="hive@CORP", password="p:/@%?#"
    )
    made = make_url(database_url(connection))
    assert (made.username, made.password, made.host, made.database) == (
        "hive@CORP", "p:/@%?#", "h", "m"
    )  # fmt: skip
    assert "p:/@" not in repr(connection)
    made = make_url(database_url(replace(connection, user="", password="")))
    assert (made.username, made.password) == ("other", "wrong")


def jdbc(rest: str, driver: str = "") -> JdbcConnection:
    return JdbcConnection(url=f"jdbc:{rest}", driver=driver)


@pytest.mark.parametrize(
    ("connection", "said"),
    [
        (jdbc("derby:;databaseName=metastore_db;create=true"), "one Java process"),
        (jdbc("oracle:thin:@h:1521/x"), "oracle"),
        (JdbcConnection(url="postgresql://h/m"), "no JDBC URL"),
        (jdbc("postgresql://a:1,b:2/m"), "one host"),
        (jdbc("postgresql://h"), "jdbc:postgresql://HOST:PORT/NAME"),
        (jdbc("postgresql://h/m?socketFactory=x.Y"), "parameter socketFactory"),
        (jdbc("postgresql://h/m?sslkey=/k.pk8"), "PEM"),
        (jdbc("mysql://h/m?trustCertificateKeyStoreUrl=file:/x.jks"), "key store"),
        (jdbc("mysql://h/m?sslMode=maybe"), "sslMode=maybe"),
        (
            jdbc("mysql://h/m", driver="org.postgresql.Driver"),
            "org.postgresql.Driver",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_taken_over_is_refused_by_name(
    connection: JdbcConnection, said: str
) -> None:
    with pytest.raises(ConfigError, match=said.replace("?", r"\?")):
        database_url(connection)


def test_a_refusal_shows_no_password() -> None:
    with pytest.raises(ConfigError) as refused:
        database_url(jdbc("postgresql://h?password=secret"))
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    "url",
    [
        "jdbc:mysql://hive:secret@db/hive",
        "mysql://hive:secret@db/hive",
        "jdbc:postgresql:hive?user=x&pass=secret",
        "jdbc:mysql://address=(host=a)(password=secret)/hive",
    ],
)
def test_no_form_of_a_password_is_shown(url: str) -> None:
    with pytest.raises(ConfigError) as refused:
        database_url(JdbcConnection(url=url))
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    "url", ["postgresql://u:secret@h/db", "postgresql://h/db?user=u&password=secret&x=y"]
)
def test_a_database_url_is_told_without_its_password(url: str) -> None:
    assert "secret" not in masked_url(url)


@pytest.mark.parametrize(
    ("url", "is_known"),
    [
        ("postgresql+psycopg://hive@h:5432/m", True),
        ("postgresql://hive@h/m", True),
        ("postgresql://hive@h/m?sslmode=require", True),
        ("postgresql://hive:other@h/m", False),
        ("postgresql://root@h/m", False),
        ("postgresql://hive@elsewhere/m", False),
        ("postgresql://hive@h:5433/m", False),
        ("postgresql://hive@h/n", False),
        ("postgresql://hive@h:port/m", False),
        ("mysql://hive@h:5432/m", False),
        ("thrift://h:9083", False),
        ("sqlite:///m", False),
    ],
)
def test_the_settings_password_is_for_their_own_account_only(url: str, is_known: bool) -> None:
    connection = JdbcConnection(url="jdbc:postgresql://h/m", user="hive", password="p@ss:w/rd%1")
    completed = url_with_password(url, connection)
    if is_known:
        assert make_url(completed).password == "p@ss:w/rd%1"
        assert completed.replace(":p%40ss%3Aw%2Frd%251@", "@") == url
    else:
        assert completed == url
    assert url_with_password(url, replace(connection, password="")) == url
    assert url_with_password(url, replace(connection, url="jdbc:derby:x")) == url
    assert url_with_password(url, None) == url
