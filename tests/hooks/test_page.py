"""The hook of docs/hooks.md does what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hms_bridge.config.settings import EventSettings, Settings
from hms_bridge.errors import MetaError
from hms_bridge.model.catalog import Database
from hms_bridge.service.open import open_local_metastore
from tests.conformance.objects import acid_table
from tests.support.databases import fresh_url

PAGE = Path(__file__).parents[2] / "docs" / "hooks.md"


def test_the_hook_of_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len([line for line in code.splitlines() if line]) <= 10
    (tmp_path / "hooks_of_the_page.py").write_text(code)
    monkeypatch.syspath_prepend(str(tmp_path))
    name = ("hooks_of_the_page.Guard",)
    metastore = open_local_metastore(
        fresh_url(tmp_path),
        settings=Settings(
            warehouse=str(tmp_path / "w"), events=EventSettings(pre_listeners=name, listeners=name)
        ),
    )
    metastore.create_database(Database(name="sales"))
    metastore.create_table(acid_table("sales"))
    with pytest.raises(MetaError, match=r"DROP_TABLE sales\.t: tables of sales stay until the aud"):
        metastore.drop_table("sales", "t")
    assert metastore.get_tables("sales") == ("t",)
    metastore.close()
    assert capsys.readouterr().out.splitlines() == [
        "1 CREATE_DATABASE sales None", "2 CREATE_TABLE sales t",
    ]  # fmt: skip
