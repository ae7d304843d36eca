"""Settings: Hive's names, aliases, units; refusals say what, where and what to do."""

from pathlib import Path

import pytest

from hms_bridge.config.hive_site import read_hive_site, substitute
from hms_bridge.config.keys import KEYS
from hms_bridge.config.settings import Settings, settings_from
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
    names = [name for key in KEYS for name in (key.name, *key.aliases)]
    assert len(names) == len(set(names))
    assert all(key.doc.endswith(".") for key in KEYS)
