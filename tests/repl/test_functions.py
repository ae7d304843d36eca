"""Functions of a source come to its replica, with the files that they need."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from hms_bridge.errors import ReplError, SourceFileMissingError
from hms_bridge.model.catalog import Database, PrincipalType
from hms_bridge.model.function import Function, Resource, ResourceType
from hms_bridge.repl.dump.plan import IncrementalRules
from hms_bridge.repl.format.object_metadata import FunctionMetadata
from hms_bridge.repl.format.passed_kinds import PASSED_BY_DEFAULT
from hms_bridge.repl.format.untrusted import DumpRules
from hms_bridge.repl.format.verify import verify_dump
from tests.support.repl_world import ReplWorld


def jar(world: ReplWorld, name: str = "udf.jar", content: bytes = b"code") -> Path:
    path = world.folder / "jars" / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    return path


def function(name: str = "f", *files: Path | str) -> Function:
    return Function(
        name=name,
        database_name="src",
        class_name="org.example.F",
        owner_name="bob",
        owner_type=PrincipalType.USER,
        resources=tuple(
            Resource(type=ResourceType.JAR, uri=f"file:{one}" if isinstance(one, Path) else one)
            for one in files
        ),
    )


def load(world: ReplWorld, **changes):
    loader = world.loader()
    root = str(world.folder / "functions")
    return loader.run(loader.plan(replace(world.load_request, functions_root=root, **changes)))


def content(made: Function) -> bytes:
    (resource,) = made.resources
    return Path(resource.uri.removeprefix("file:")).read_bytes()


def test_a_bootstrap_brings_functions_and_their_jars(world):
    source = jar(world)
    world.source.create_function(function("f", source))
    world.source.create_function(function("bare"))
    report = world.dump()
    load(world)
    bare, made = world.target.get_functions("dst")
    assert (bare.name, bare.class_name, bare.resources) == ("bare", "org.example.F", ())
    assert content(made) == b"code"
    assert (made.owner_name, made.owner_type) == ("bob", PrincipalType.USER)
    assert Path(made.resources[0].uri.removeprefix("file:")) == (
        world.folder / "functions" / "dst" / "f" / str(report.from_event_id) / "udf.jar"
    )


def test_events_bring_functions_and_take_them(world):
    world.dump()
    load(world)
    source = jar(world)
    world.source.create_function(function("f", source))
    world.source.create_function(function("bare"))
    world.dump()
    assert load(world).events == {"EVENT_CREATE_FUNCTION": 2}
    assert content(world.target.get_function("dst", "f")) == b"code"
    assert world.target.get_function("dst", "bare").resources == ()
    world.source.drop_function("src", "f")
    jar(world, content=b"new code")
    world.source.create_function(function("f", source))
    world.dump()
    load(world)
    assert content(world.target.get_function("dst", "f")) == b"new code"
    world.source.drop_function("src", "bare")
    world.dump()
    assert load(world).events == {"EVENT_DROP_FUNCTION": 1}
    assert [made.name for made in world.target.get_functions("dst")] == ["f"]


def test_a_load_that_is_repeated_finds_its_copy(world):
    world.dump()
    load(world)
    world.source.create_function(function("f", jar(world)))
    world.dump()
    before = world.target.get_database("dst")
    load(world)
    made = world.target.get_function("dst", "f")
    world.target.alter_database("dst", before)
    assert load(world).copied.kept == 1
    assert world.target.get_function("dst", "f") == made


def test_a_jar_that_was_changed_since_the_dump_is_lost_loudly(world):
    source = jar(world)
    world.source.create_function(function("f", source))
    directory = str(world.dump().directory)
    source.write_bytes(b"other")
    assert len(verify_dump(world.resolve, directory).missing) == 1
    with pytest.raises(SourceFileMissingError, match=r"udf\.jar.*Nothing was changed"):
        load(world)
    assert "dst" not in world.target.get_databases()
    source.write_bytes(b"code")
    load(world)
    assert content(world.target.get_function("dst", "f")) == b"code"


def test_a_jar_that_is_gone_stops_the_dump_unless_its_function_is_gone_too(world):
    world.dump()
    load(world)
    source = jar(world)
    world.source.create_function(function("f", source))
    source.unlink()
    with pytest.raises(ReplError, match=r"udf\.jar, which function src\.f needs, is gone"):
        world.dump()
    world.source.drop_function("src", "f")
    report = world.dump()
    assert dict(report.events.passed) == {"CREATE_FUNCTION": 1}
    load(world)
    assert world.target.get_functions("dst") == ()


def test_what_is_on_no_file_system_stays_where_it_is_with_a_note(world):
    world.source.create_function(function("f", "ivy://org.example:udf:1.0"))
    world.dump()
    report = load(world)
    (made,) = world.target.get_functions("dst")
    assert made.resources[0].uri == "ivy://org.example:udf:1.0"
    assert "function dst.f uses ivy://org.example:udf:1.0 where it is" in report.notes[0]


def test_a_replica_may_do_without_functions(world):
    source = jar(world)
    world.source.create_function(function("f", source))
    world.dump()
    rules = DumpRules(passed_kinds=PASSED_BY_DEFAULT | {"_functions", "EVENT_CREATE_FUNCTION"})
    load(world, rules=rules)
    world.source.create_function(function("g", source))
    world.dump()
    source.unlink()
    assert load(world, rules=rules).passed == {"EVENT_CREATE_FUNCTION": 1}
    source = jar(world)
    world.source.create_function(function("h", source))
    passed = IncrementalRules(passed_kinds=PASSED_BY_DEFAULT | {"CREATE_FUNCTION"})
    assert dict(world.dump(events=passed).events.passed) == {"CREATE_FUNCTION": 1}
    load(world)
    assert world.target.get_functions("dst") == ()


@pytest.mark.parametrize(
    ("name", "uri", "message"),
    [
        ("../../f", None, "no name of a function"),
        ("f", "file:/jars/..###", "has a level"),
        ("f", "http://evil/a.jar###", "may not name here"),
        ("f", "file:/jars/a.jar###../up", "names a sub-directory that is not below"),
    ],
)
def test_a_forged_function_does_not_leave_its_place(world, name, uri, message):
    world.source.create_function(function("f", jar(world)))
    directory = Path(str(world.dump().directory).removeprefix("file:")) / "hive"
    file = directory / "metadata/src/_functions/f/_metadata"
    (directory / "_hms_bridge_manifest").unlink()
    (directory / "_finished_dump").write_text("")
    world.is_from_hive = True
    metadata = FunctionMetadata.parse(file.read_text())
    forged = metadata.function.replace('"1":{"str":"f"}', f'"1":{{"str":"{name}"}}')
    if uri is not None:
        start = forged.index('"2":{"str":"file:')
        forged = forged[:start] + f'"2":{{"str":"{uri}' + forged[forged.index('"}', start) :]
    file.write_text(replace(metadata, function=forged).format())
    with pytest.raises(ReplError, match=message):
        load(world)
    assert "dst" not in world.target.get_databases()


@pytest.mark.golden
def test_a_file_of_real_hive_comes_back(cycle):
    path = cycle.dump("02") / "hive/metadata/src/_functions/fn_jar/_metadata"
    assert FunctionMetadata.parse(path.read_text()).format() == path.read_text()


@pytest.mark.parametrize("is_bootstrap", [True, False])
def test_a_dump_still_brings_a_function_that_was_dropped_with_its_jar(world, is_bootstrap):
    """Whoever drops a function may remove its jar; Hive archives it first, too."""
    if not is_bootstrap:
        world.dump()
        load(world)
    source = jar(world)
    world.source.create_function(function("f", source))
    world.dump()
    world.source.drop_function("src", "f")
    assert source.exists()
    source.unlink()
    assert load(world).copied.archive_files == 1
    assert content(world.target.get_function("dst", "f")) == b"code"
    world.dump()
    load(world)
    assert world.target.get_functions("dst") == ()


def test_a_function_is_dropped_though_its_files_are_gone_or_nowhere(world):
    source = jar(world)
    world.source.create_function(function("f", source, "ivy://org.example:udf:1.0"))
    source.unlink()
    world.source.drop_function("src", "f")
    assert world.source.get_functions("src") == ()
    world.target.create_database(Database(name="mine"))
    world.target.create_function(replace(function("f", jar(world)), database_name="mine"))
    world.target.drop_function("mine", "f")
    assert not list(world.cmroot.glob("udf.jar*"))


def test_a_drop_archives_no_file_that_only_a_client_names(world, caplog):
    """Whoever reaches the port would have any file of the server's machine copied."""
    world.close()
    world.start(location_roots=())
    secret = jar(world, "shadow")
    (world.warehouse / "link").symlink_to(secret.parent)
    for place in (secret, world.warehouse / "link" / "shadow"):
        world.source.create_function(function("f", place))
        world.source.drop_function("src", "f")
    assert not list(world.cmroot.glob("shadow*"))
    assert "shadow is not archived" in caplog.text
    kept = world.warehouse / "udf.jar"
    kept.write_bytes(b"code")
    world.source.create_function(function("f", kept))
    world.source.drop_function("src", "f")
    assert list(world.cmroot.glob("udf.jar*"))


def test_what_is_no_plain_file_stops_a_dump_by_name_and_no_drop(world):
    """A pipe or a device could be read for ever."""
    os.mkfifo(world.folder / "pipe")
    for place in ("/dev/zero", f"{world.folder}/pipe", str(jar(world).parent)):
        world.source.create_function(function("f", f"file:{place}"))
        with pytest.raises(ReplError, match=rf"{place}, which function src\.f needs, is no plain"):
            world.dump()
        world.source.drop_function("src", "f")
    assert not list(world.cmroot.glob("udf.jar*"))
