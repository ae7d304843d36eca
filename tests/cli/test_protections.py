"""Settings that ask for protection, and are not kept: they stop what they are about, by name."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

import pytest

from hms_bridge.connect import open_local
from hms_bridge.errors import ConfigError
from hms_bridge.server.serve import MetastoreServer
from hms_bridge.spark.catalog import catalog_settings
from tests.support.program import Answer, Program, run_here

BY_HIVE = "org.apache.hadoop.hive.ql.security.authorization."
LISTENER = BY_HIVE + "AuthorizationPreEventListener"
STORAGE_BASED = BY_HIVE + "StorageBasedAuthorizationProvider"
RANGER = BY_HIVE + "plugin.metastore.HiveMetaStoreAuthorizer"
SENTRY = "org.apache.sentry.binding.metastore.AuthorizingObjectStore"
FILTER = BY_HIVE + "plugin.AuthorizationMetaStoreFilterHook"
BOTH_SIDES = {"sasl.enabled": "true", "use.SSL": " TRUE "}
OF_THE_PORT = {
    **BOTH_SIDES,
    "authentication": "KERBEROS",
    "server.thrift.transport.mode": "http",
    "pre.event.listeners": f"json-lines,{LISTENER}",
    "authorization.storage.checks": "true",
    "filter.hook": FILTER,
}
OF_CLIENTS = {
    **BOTH_SIDES,
    "client.auth.mode": "JWT",
    "client.thrift.transport.mode": "http",
}


@pytest.fixture
def used_port() -> Iterator[str]:
    """Where nothing can be served: who comes as far as listening says so, and ends."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        yield str(listener.getsockname()[1])


def _refused(answer: Answer, *words: str) -> None:
    assert answer.exit_code == 1, answer
    assert all(word in answer.err for word in words), answer.err
    assert "Traceback" not in answer.err


def _both_names(settings: Mapping[str, str]) -> list[tuple[str, str]]:
    return [
        (f"{family}{name}", value)
        for name, value in settings.items()
        for family in ("metastore.", "hive.metastore.")
    ]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *_both_names(OF_THE_PORT),
        ("hive.metastore.pre.event.listeners", RANGER),
        ("hive.metastore.rawstore.impl", SENTRY),
        ("hive.security.metastore.authorization.manager", STORAGE_BASED),
        ("hadoop.security.authorization", "true"),
        ("hadoop.security.authentication", "kerberos"),
    ],
)
def test_a_server_does_not_begin_where_its_port_is_to_be_protected(
    name: str, value: str, used_port: str, tmp_path: Path
) -> None:
    """Each by both names; the refusal has file, name, value and what to do."""
    program = Program(tmp_path, {name: value})
    answer = program.run("serve", "--port", used_port)
    _refused(answer, str(tmp_path / "hive-site.xml"), name, value.strip(), "so yet: ", "; ")


SASL = "hive.metastore.sasl.enabled"


def _site(path: Path, *properties: str) -> None:
    path.write_text(f"<configuration>{''.join(properties)}</configuration>")


@pytest.mark.parametrize("variable", ["HIVE_CONF_DIR", "METASTORE_CONF_DIR"])
@pytest.mark.parametrize("name", ["hivemetastore-site.xml", "metastore-site.xml"])
def test_files_of_hives_metastore_count(
    name: str, variable: str, used_port: str, tmp_path: Path
) -> None:
    """Hive's metastore reads them after hive-site.xml, from the same folder."""
    program = Program(tmp_path, {SASL: "false"})
    words = ("serve", "--port", used_port)
    _refused(program.run(*words), "in use by another program")
    _site(tmp_path / name, f"<property><name>{SASL}</name><value>true</value></property>")
    _refused(program.run(*words), str(tmp_path / name), SASL, "true")
    alone = run_here(
        *words, "--database", program.url,
        environment={variable: str(tmp_path)},
    )  # fmt: skip
    _refused(alone, str(tmp_path / name), SASL)
    (tmp_path / "hive-site.xml").unlink()
    alone = run_here(
        *words, "--database", program.url,
        environment={variable: str(tmp_path)},
    )  # fmt: skip
    _refused(alone, str(tmp_path / name), SASL)


@pytest.mark.parametrize("variable", ["HADOOP_CONF_DIR", "HIVE_CONF_DIR"])
def test_hadoops_own_files_count(
    variable: str, used_port: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "core-site.xml"
    site.write_text(
        "<configuration><property><name>hadoop.security.authentication</name>"
        "<value>kerberos</value></property></configuration>"
    )
    monkeypatch.setenv(variable, str(tmp_path))
    words = ("serve", "--port", used_port)
    answer = Program(tmp_path).run(*words)
    _refused(answer, "core-site.xml", "hadoop.security.authentication", "--insecure")
    _refused(Program(tmp_path).run(*words, "--insecure"), "in use by another program")


@pytest.mark.parametrize(("name", "value"), _both_names(OF_CLIENTS))
def test_no_client_talks_in_clear_where_it_is_not_to(name: str, value: str, tmp_path: Path) -> None:
    """A server is there, and would have answered."""
    program = Program(tmp_path, {name: value})
    store = open_local(program.url)
    with MetastoreServer(0, store.metastore) as server:
        address = f"thrift://127.0.0.1:{server.port}"
        _refused(program.run("txns", "--metastore", address), name, value.strip(), "in clear")
        off = {"mode": "binary"}.get(name.rpartition(".")[2], "false")
        off = "NOSASL" if "auth" in name else off
        own = program.run("txns", "--metastore", address, "--set", f"{name}={off}")
        assert own.exit_code == 0, own
    store.metastore.close()
    assert program.run("txns").exit_code == 0, "a database is no metastore server"


def test_sparks_catalog_goes_by_the_same_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is given no settings: those around the driver count."""
    site = tmp_path / "hive-site.xml"
    _site(site, f"<property><name>{SASL}</name><value>true</value></property>")
    for name, value in (
        ("HIVE_CONF_DIR", str(tmp_path)),
        ("HMS_BRIDGE_CONFIG", str(site)),
    ):
        monkeypatch.setenv(name, value)
        with pytest.raises(ConfigError, match=f"{site}: {SASL} is 'true'"):
            catalog_settings("acid", metastore="thrift://127.0.0.1:1")
        monkeypatch.delenv(name)


@pytest.mark.parametrize("asked", ["use.SSL", "properties"])
def test_a_database_is_not_asked_in_clear_where_hive_would_encrypt(
    asked: str, tmp_path: Path
) -> None:
    """The URL may ask for encryption itself; then the database is tried, and nobody is there."""
    value = "true" if asked == "use.SSL" else "javax.net.ssl.trustStore=/etc/trust.jks"
    for name in (f"metastore.dbaccess.ssl.{asked}", f"hive.metastore.dbaccess.ssl.{asked}"):
        program = Program(tmp_path, {name: value})
        url = "postgresql+psycopg://hive@127.0.0.1:1/m"
        for words in (("txns",), ("schema", "info")):
            _refused(program.run(*words, "--database", url), name, value, "sslmode=verify-full")
        tried = program.run("txns", "--database", f"{url}?sslmode=require&connect_timeout=1")
        assert name not in tried.err
        assert name not in program.run("txns").err, "a file has no connection"


def test_an_archive_of_an_encryption_zone_is_refused(used_port: str, tmp_path: Path) -> None:
    for name, value in (
        ("hive.repl.cm.encryptionzone.rootdir", "/zone/.cm"),
        ("metastore.repl.cm.nonencryptionzone.rootdir", "/plain/cm"),
    ):
        program = Program(tmp_path, {name: value})
        _refused(program.run("serve", "--port", used_port), name, value, "zone")
        _refused(program.run("cm", "ls"), name, value, "zone")


def test_hives_defaults_ask_for_nothing(used_port: str, tmp_path: Path) -> None:
    """As a real hive-site.xml without Kerberos has them (`hive --service metastore` 4.2)."""
    manager = BY_HIVE + "DefaultHiveMetastoreAuthorizationProvider"
    names = {
        "sasl.enabled": "false",
        "use.SSL": "False",
        "authentication": "nosasl",
        "client.auth.mode": "NOSASL",
        "server.thrift.transport.mode": "binary",
        "client.thrift.transport.mode": "binary",
        "execute.setugi": "true",
        "filter.hook": "org.apache.hadoop.hive.metastore.DefaultMetaStoreFilterHookImpl",
        "pre.event.listeners": "",
        "kerberos.principal": "hive-metastore/_HOST@EXAMPLE.COM",
        "authorization.storage.checks": "false",
        "dbaccess.ssl.use.SSL": "false",
    }
    others = {
        "hive.security.metastore.authorization.manager": manager,
        "hive.security.authorization.enabled": "true",
        "hive.server2.enable.doAs": "true",
        "hive.server2.authentication": "NONE",
        "hive.repl.cm.encryptionzone.rootdir": ".cmroot",
        "hive.repl.cm.nonencryptionzone.rootdir": "",
        "hadoop.security.authentication": "simple",
        "hadoop.security.authorization": "false",
    }
    program = Program(tmp_path, {**dict(_both_names(names)), **others})
    _refused(program.run("serve", "--port", used_port), "in use by another program")
    assert program.run("txns").exit_code == 0


def test_one_command_may_do_without(used_port: str, tmp_path: Path) -> None:
    """The file stays as others need it."""
    program = Program(tmp_path, {"metastore.sasl.enabled": "true"})
    words = ("serve", "--port", used_port)
    answer = program.run(*words, "--set", "hive.metastore.sasl.enabled=false")
    _refused(answer, "in use by another program")
    _refused(program.run(*words, "--insecure"), "sasl.enabled")
    assert "unknown setting" in run_here("serve", "--set", "hive.metastore.sasl.on=false").err


@pytest.mark.process
def test_no_client_is_answered(tmp_path: Path) -> None:
    """As a process: it ends, instead of serving in clear."""
    program = Program(tmp_path, {"hive.metastore.use.SSL": "true"})
    _refused(program.start("serve", "--port", "0", seconds=20), "hive.metastore.use.SSL is 'true'")
