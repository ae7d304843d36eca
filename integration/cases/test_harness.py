"""The harness: what cannot be had is said loudly, what was started is stopped, the README is
true.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from integration.referees import debian, install
from integration.referees.errors import InstallError, RefereeError, StartError
from integration.referees.hive42 import Hive42
from integration.referees.hive42_departures import DEPARTURES, departing_settings
from integration.referees.processes import Workplace, free_port, is_listening
from integration.story.writer import Ledger

CHECKOUT = Path(__file__).parents[2]
NOWHERE_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>referees</groupId><artifactId>nowhere</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies><dependency>
    <groupId>referees</groupId><artifactId>no-such-system</artifactId><version>1</version>
  </dependency></dependencies>
</project>
"""


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(install.CACHE_VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def own_workplace(tmp_path: Path) -> Workplace:
    return Workplace(tmp_path / "logs")


def test_part_that_pip_cannot_give_fails_loudly(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")  # no registry is asked
    part = replace(install.JAVA_21, recipe="no-such-referee==0.0.0")
    with pytest.raises(InstallError) as failure:
        install.ensure(part)
    assert failure.value.part == "Java 21"
    assert "no-such-referee" in failure.value.why
    assert "what to do: " in str(failure.value)
    assert not (own_cache / part.name).exists()


def test_part_that_maven_cannot_give_fails_loudly(
    own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "nowhere.pom.xml").write_text(NOWHERE_POM)
    monkeypatch.setattr(install, "RECIPES", tmp_path)
    (tmp_path / ".mvn").mkdir()
    (tmp_path / ".mvn" / "maven.config").write_text("--offline\n")  # no registry is asked
    with pytest.raises(InstallError, match="mvn ended with 1"):
        install.ensure(replace(install.HADOOP, recipe="nowhere.pom.xml"))


def test_missing_part_ends_the_installation(
    own_cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert install.main(["no-such-part"]) == 2
    assert "unknown parts: no-such-part" in capsys.readouterr().out


def test_part_is_installed_once(own_cache: Path) -> None:
    built: list[Path] = []

    def build(part: install.Part, target: Path) -> None:
        built.append(target)
        (target / "content").write_text("x")

    part = install.Part(name="toy", what="toy", source="here", recipe="one", build=build)
    assert install.ensure(part) == install.ensure(part) == own_cache / "toy"
    assert len(built) == 1
    install.ensure(replace(part, recipe="two"))
    assert len(built) == 2


def test_interrupted_installation_is_begun_again(own_cache: Path) -> None:
    def fail(part: install.Part, target: Path) -> None:
        (target / "half").write_text("x")
        raise KeyboardInterrupt

    def build(part: install.Part, target: Path) -> None:
        (target / "whole").write_text("x")

    part = install.Part(name="toy", what="toy", source="here", recipe="one", build=fail)
    with pytest.raises(KeyboardInterrupt):
        install.ensure(part)
    folder = install.ensure(replace(part, build=build))
    assert sorted(path.name for path in folder.iterdir()) == [install.STAMP, "whole"]


def test_missing_program_needs_root(monkeypatch: pytest.MonkeyPatch) -> None:
    program = debian.Program(what="Some server", packages=("some-server",), find=lambda: None)
    monkeypatch.setattr(os, "getuid", lambda: 1000)
    with pytest.raises(
        InstallError, match="apt-get install -y --no-install-recommends some-server"
    ):
        debian.ensure(program)


def test_server_that_dies_shows_its_log(own_workplace: Workplace) -> None:
    server = own_workplace.start("dying", ["sh", "-c", "echo the reason; exit 3"])
    with pytest.raises(StartError, match=r"dying ended with 3 before it was ready.*\n.*the reason"):
        server.wait_until(lambda: False)
    own_workplace.close()


def test_server_that_is_never_ready_is_given_up(own_workplace: Workplace) -> None:
    server = own_workplace.start("silent", ["sleep", "60"])
    with pytest.raises(StartError, match="silent was not ready"):
        server.wait_until(lambda: False, timeout_seconds=0.3)
    own_workplace.close()
    assert not server.is_running


def test_stop_ends_the_whole_process_group(own_workplace: Workplace, tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    server = own_workplace.start("parent", ["sh", "-c", f"sleep 60 & echo $! > {pid_file}; wait"])
    server.wait_until(lambda: pid_file.exists() and pid_file.read_text().strip().isdigit())
    child = int(pid_file.read_text())
    server.stop()
    server.stop()
    _wait_until_gone(child)
    own_workplace.close()


def test_failing_program_leaves_its_log(own_workplace: Workplace) -> None:
    with pytest.raises(RefereeError, match="short ended with 2"):
        own_workplace.run("short", ["sh", "-c", "echo output; echo trouble >&2; exit 2"])
    assert (own_workplace.log_folder / "short.log").read_text() == "output\ntrouble\n"
    own_workplace.close()


KILLED_RUN = """
import sys, time
from pathlib import Path
from integration.referees.processes import Workplace
place = Workplace(Path(sys.argv[1]))
print(place.start("server", ["sleep", "60"]).process.pid, flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_nothing_survives_a_killed_run(tmp_path: Path, number: signal.Signals) -> None:
    run = subprocess.Popen(
        [sys.executable, "-c", KILLED_RUN, tmp_path / "logs"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"PYTHONPATH": str(CHECKOUT), "TMPDIR": str(tmp_path)},
    )
    with run:
        server = int(run.stdout.readline()) if run.stdout else 0
        run.send_signal(number)
    _wait_until_gone(server)


def _wait_until_gone(pid: int) -> None:
    deadline = time.monotonic() + 20
    while Path(f"/proc/{pid}").exists() and _state(pid) != "Z":
        assert time.monotonic() < deadline, f"process {pid} is still there"
        time.sleep(0.05)


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return "Z"


def test_free_ports_are_free() -> None:
    assert not is_listening(free_port())


def test_recipes_name_no_host() -> None:
    named = [
        path.name
        for path in install.RECIPES.iterdir()
        for line in path.read_text().replace("http://maven.apache.org/POM/4.0.0", "").splitlines()
        if "://" in line
    ]
    assert named == []


def test_every_setting_of_hive_that_is_no_default_has_a_reason(hive42: Hive42) -> None:
    assert hive42.settings.keys() == departing_settings()
    known = hive42.main.jvm.org.apache.hadoop.hive.conf.HiveConf
    defaults = {
        name: variable.getDefaultValue()
        for name in hive42.settings
        if (variable := known.getConfVars(name)) is not None
    }
    assert [name for name, default in defaults.items() if hive42.settings[name] == default] == []
    assert [one for one in DEPARTURES if len(one.reason) < 20 or not one.end] == []


def test_hive_on_our_metastore_has_no_other_settings(
    hive42: Hive42, hive42_on_ours: Hive42
) -> None:
    assert hive42_on_ours.settings.keys() - hive42.settings.keys() == {"hive.metastore.uris"}


def test_a_lost_row_a_doubled_one_and_a_ghost_are_told() -> None:
    """The writer of the cases with kills; an answer that never came may mean either."""
    ledger = Ledger()
    ledger.acknowledged({1: "a", 2: "b"})
    ledger.failed({2: "B", 3: "c"})
    ledger.acknowledged({1: None, 4: "d"})
    rows = [("id2", "2", "b", "p"), ("id4", "4", "d", "p")]
    assert ledger.differences(rows) == []
    assert ledger.differences([("id2", "2", "B", "p"), ("id3", "3", "c", "p"), rows[1]]) == []
    assert ledger.differences(rows[:1]) == ["4 is None, may be ['d']"]
    assert ledger.differences([*rows, ("id1", "1", "a", "p")]) == ["1 is a, may be ['None']"]
    assert ledger.differences([*rows, ("id9", "9", "x", "p")]) == ["9 was never written"]
    assert ledger.differences([*rows, ("new", "4", "d", "p")]) == ["4 is there 2 times"]
    assert ledger.differences([*rows, ("id4", "3", "c", "p")]) == ["('id4', 'p') twice"]
