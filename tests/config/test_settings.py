"""Settings: Hive's names, aliases, units; refusals say what, where and what to do."""

from pathlib import Path

import pytest

from hms_bridge.config.hive_site import read_hadoop_site, read_hive_site, substitute
from hms_bridge.config.reading import misspelt, settings_from
from hms_bridge.config.settings import KEYS, Settings
from hms_bridge.errors import ConfigError

HOUR_MS = 3_600_000


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [("10", 10 * HOUR_MS), ("10h", 10 * HOUR_MS), ("10d", 240 * HOUR_MS), ("90s", 90_000),
     ("5ms", 5), ("2 min", 120_000), ("1 DAYS", 24 * HOUR_MS)],
)  # fmt: skip
def test_retention_units_are_hives(text: str, milliseconds: int) -> None:
    assert settings_from({"hive.repl.cm.retain": text}).archive.retain_ms == milliseconds


@pytest.mark.parametrize("text", ["0", "-1h", "soon", "10 parsecs", ""])
def test_a_bad_retention_names_key_and_source(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^site\.xml: hive\.repl\.cm\.retain is"):
        settings_from({"hive.repl.cm.retain": text}, "site.xml")


def test_both_spellings_of_a_key_count() -> None:
    assert settings_from({"metastore.txn.timeout": "5s"}).txn.timeout_ms == 5000
    assert settings_from({"hive.txn.timeout": "6s"}).txn.timeout_ms == 6000


def test_defaults_of_records_and_keys_agree() -> None:
    assert settings_from({}) == Settings()


def test_own_keys_are_checked_for_spelling_and_foreign_ones_are_not() -> None:
    with pytest.raises(ConfigError, match=r"hms\.bridge\.evnt"):
        settings_from({"hms.bridge.evnt.hooks": "x"})
    settings_from({"hive.something.else": "x"})


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("hive.repl.cm.retian", "hive.repl.cm.retain"),
        ("hive.repl.cmroot.dir", "hive.repl.cmrootdir"),
        ("hive.compacter.initiater.on", "hive.compactor.initiator.on"),
        ("metastore.thrift.prot", "metastore.thrift.port"),
        ("metastore.txn.timout", "metastore.txn.timeout"),
    ],
)
def test_a_name_that_is_nearly_ours_is_misspelt(name: str, meant: str) -> None:
    assert misspelt([name, "hive.repl.cm.retain"]) == {name: meant}


@pytest.mark.parametrize(
    "name",
    [
        "hive.compactor.wait.timeout",
        "hive.compactor.worker.etl.threads",
        "hive.compactor.worker.pool.timeout",
        "hive.compactor.worker.sleep.time",
        "hive.exec.scratchdir",
        "hive.metastore.schema.verification",
        "hive.metastore.server.min.threads",
        "hive.repl.retain.prev.dump.dir.count",
        "metastore.compactor.initiator.tablecache.on",
        "metastore.repl.rootdir",
    ],
)
def test_what_is_hive_s_alone_is_not(name: str) -> None:
    """Of the 1,873 names in HiveConf and MetastoreConf of 2.3 to 4.2 those that are most like one
    of ours, and some others."""
    assert misspelt([name]) == {}


def test_hive_site_with_references(tmp_path: Path) -> None:
    site = tmp_path / "hive-site.xml"
    site.write_text(
        "<configuration><property><name>base</name><value>/data</value></property>"
        "<property><name>hive.repl.cmrootdir</name><value>${base}/${user}/cm</value></property>"
        "</configuration>"
    )
    root = settings_from(read_hive_site(site)).archive.root
    assert root.startswith("/data/")
    assert root.endswith("/cm")
    assert "${" not in root


@pytest.mark.parametrize(
    "text", ["<configuration>", "<a><property><value>1</value></property></a>"]
)
def test_a_broken_file_is_refused_with_its_name(tmp_path: Path, text: str) -> None:
    site = tmp_path / "hive-site.xml"
    site.write_text(text)
    with pytest.raises(ConfigError, match=str(site)):
        read_hive_site(site)
    with pytest.raises(ConfigError, match="cannot read"):
        read_hive_site(tmp_path / "absent.xml")


def test_a_circle_of_references_ends() -> None:
    with pytest.raises(ConfigError, match="refers to itself"):
        substitute("${a}", {"a": "x${b}", "b": "y${a}"}, {})


def test_every_key_says_what_it_does() -> None:
    names = [name for key in KEYS for name in key.names]
    assert len(names) == len(set(names))
    assert all(key.doc.endswith(".") for key in KEYS)


def _site(folder: Path, name: str, properties: str) -> None:
    (folder / name).write_text(f"<configuration>{properties}</configuration>")


def _property(name: str, value: str, more: str = "") -> str:
    return f"<property><name>{name}</name><value>{value}</value>{more}</property>"


@pytest.mark.parametrize(
    "properties",
    [
        '<property name="a" value="true"/>',
        '<property value="true"><name>a</name></property>',
        '<property final="true"><name>a</name><value>true</value></property>'
        "<property><name>a</name><value>false</value></property>",
        "<property><name>a</name><value>true</value></property><property><name>a</name></property>",
        '<property value="false"><name>a</name><value>true</value></property>',
    ],
)
def test_a_property_is_read_as_hadoop_reads_it(tmp_path: Path, properties: str) -> None:
    """Configuration.Parser: attributes count, elements before them; without a value it is none."""
    _site(tmp_path, "hive-site.xml", properties)
    assert read_hive_site(tmp_path / "hive-site.xml") == {"a": "true"}


@pytest.mark.parametrize("prefix", ["", "xi:"])
def test_an_include_is_refused_by_name(tmp_path: Path, prefix: str) -> None:
    """What it holds could be the file system of all bare paths."""
    attribute = f"xmlns{':xi' if prefix else ''}='http://www.w3.org/2001/XInclude'"
    _site(tmp_path, "core-site.xml", f"<{prefix}include {attribute} href='cluster.xml'/>")
    with pytest.raises(ConfigError, match=r"core-site\.xml includes cluster\.xml"):
        read_hadoop_site({"HADOOP_CONF_DIR": str(tmp_path)})


def test_a_final_value_stays(tmp_path: Path) -> None:
    final = "<final>true</final>"
    core = _property("fs.a", "first", final) + _property("fs.a", "second")
    _site(tmp_path, "core-site.xml", core + _property("fs.b", "first"))
    _site(tmp_path, "hdfs-site.xml", _property("fs.a", "third") + _property("fs.b", "second"))
    found = read_hadoop_site({"HADOOP_CONF_DIR": str(tmp_path)})
    assert found == {"fs.a": "first", "fs.b": "second"}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("${env.NN}", "nn1"), ("${env.NN:-nn2}", "nn1"), ("${env.NONE:-nn2}", "nn2"),
        ("${env.NONE-nn-2}", "nn-2"), ("${env.EMPTY:-nn2}", "nn2"), ("${env.EMPTY-nn2}", ""),
        ("${env.NONE}", "${env.NONE}"),
    ],
)  # fmt: skip
def test_references_to_the_environment_are_hadoops(tmp_path: Path, text: str, value: str) -> None:
    _site(tmp_path, "core-site.xml", _property("fs.a", text))
    environment = {"HADOOP_CONF_DIR": str(tmp_path), "NN": "nn1", "EMPTY": ""}
    assert read_hadoop_site(environment) == {"fs.a": value}


@pytest.mark.parametrize("key", ["hive.repl.cmrootdir", "hive.metastore.warehouse.dir"])
def test_a_place_with_a_reference_to_nothing_is_refused(key: str) -> None:
    """It would become a directory of that name."""
    with pytest.raises(ConfigError, match=r"nothing says what \$\{env\.NO_SUCH_NAME\} is"):
        settings_from({key: "${env.NO_SUCH_NAME}/place"})


def test_a_default_file_system_with_a_reference_to_nothing_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"fs\.defaultFS is"):
        settings_from({}, hadoop_site={"fs.defaultFS": "hdfs://${no.such.name}"})


def test_references_to_hadoops_own_configuration() -> None:
    given = {"hive.metastore.warehouse.dir": "${fs.defaultFS}/warehouse"}
    settings = settings_from(given, hadoop_site={"fs.defaultFS": "hdfs://nn:8020"})
    assert settings.warehouse == "hdfs://nn:8020/warehouse"
