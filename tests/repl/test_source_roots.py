"""Which places of a dump a load reads: decided from the roots, noted, and held while it copies."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from changemanager.errors import OutsideRootsError
from hms_bridge.errors import OriginNotTrustedError, ReplError
from hms_bridge.model.target import Target
from hms_bridge.repl.format.external_list import ExternalDirectory
from hms_bridge.repl.format.untrusted import DumpedFile
from hms_bridge.repl.format.verify import NamedFile
from hms_bridge.repl.load.admission import SourcePlaces
from hms_bridge.repl.load.plan import LoadRequest
from hms_bridge.repl.load.source_roots import outermost, plan_roots
from tests.support.repl_world import ReplWorld

DELTA = "delta_0000001_0000001_0000"
CHECKSUM = "0" * 56


def named(
    uri: str, *, cmroot: str | None = None, partition: str | None = None, below: str = DELTA,
    is_of_function: bool = False,
) -> NamedFile:  # fmt: skip
    file = DumpedFile(
        uri=uri, checksum=CHECKSUM if cmroot else None, cmroot=cmroot, sub_directory=below,
        source_directory=below,
    )  # fmt: skip
    target = Target("sales", "t", partition)
    return NamedFile(file=file, target=target, event_id=None, is_of_function=is_of_function)


def below(*roots: str):
    def outside(place: str) -> OutsideRootsError | None:
        is_below = any(place == root or place.startswith(f"{root}/") for root in roots)
        return None if is_below else OutsideRootsError(f"{place} is outside", place)

    return outside


def lacking(*files: NamedFile, roots: tuple[str, ...] = ()) -> tuple[str, ...]:
    return plan_roots(files, (), "sales", below(*roots)).lacking


@pytest.mark.parametrize(
    ("file", "root"),
    [
        (named(f"/w/sales.db/t/{DELTA}/b"), "/w/sales.db"),
        (named(f"/w/sales.db/t/p=1/{DELTA}/b", partition="p=1"), "/w/sales.db"),
        (named(f"/w/x/t/p=1/q=2/{DELTA}/b", partition="p=1/q=2"), "/w/x/t"),
        (named(f"/odd/place/{DELTA}/b", partition="p=1"), "/odd/place"),
        (named("/etc/shadow"), "/etc"),
        (named("/w/sales.db/t/b", below=""), "/w/sales.db"),
        (named("/jars/udf.jar", below="", is_of_function=True), "/jars"),
    ],
)
def test_what_would_have_to_be_named_for_a_file(file: NamedFile, root: str) -> None:
    assert lacking(file) == (root,)
    assert lacking(file, roots=(root,)) == ()
    assert lacking(file, roots=("/elsewhere",)) == (root,)


def test_a_file_that_only_its_archive_may_give_is_not_looked_for_elsewhere() -> None:
    """A table that was dropped lies where nobody says any more; its files are in the archive."""
    file = named(f"/gone/t/{DELTA}/b", cmroot="/cm")
    assert lacking(file, roots=("/cm",)) == ()
    assert lacking(file, roots=("/gone",)) == ("/cm",)
    assert lacking(file) == ("/cm", "/gone/t")


def test_directories_of_external_tables_are_judged() -> None:
    directory = ExternalDirectory(source="/landing/log", target="/x", table_name="log")
    plan = plan_roots((), (directory,), "sales", below("/w"))
    assert plan.lacking == ("/landing/log",)
    assert plan_roots((), (directory,), "sales", below("/landing")).lacking == ()


def test_a_root_within_another_says_nothing_of_its_own() -> None:
    assert outermost(["/w/a", "/w", "/w/a/b", "/wide", "/w"]) == ("/w", "/wide")


def bare(world: ReplWorld, **changes: object) -> LoadRequest:
    return replace(world.load_request, roots=(), **changes)


def load(world: ReplWorld, request: LoadRequest, **options: object) -> None:
    loader = world.loader(note=world.target.policies, **options)
    loader.run(loader.plan(request))


def test_who_calls_the_library_names_places_too(world: ReplWorld) -> None:
    world.dump()
    with pytest.raises(OriginNotTrustedError, match="nobody has named") as refused:
        load(world, bare(world))
    assert refused.value.roots == (f"file:{world.cmroot}", f"file:{world.folder}/source/src.db")
    assert "dst" not in world.target.get_databases()


def test_a_replica_notes_places_once_and_for_the_next_loads(world: ReplWorld) -> None:
    world.dump()
    load(world, bare(world, is_origin_trusted=True))
    world.insert("t", (2, "b"))
    world.dump()
    load(world, bare(world))
    world.assert_same()
    shown = world.target.get_database("dst").parameters
    assert not [text for text in shown.values() if "source/src.db" in text], "no client reaches it"


def test_a_replica_of_an_earlier_version_is_asked_once(world: ReplWorld) -> None:
    world.replicate()  # it notes nothing
    world.insert("t", (2, "b"))
    world.dump()
    with pytest.raises(OriginNotTrustedError) as refused:
        load(world, bare(world))
    command = f"--root {world.repl_root} --files-from file:{world.cmroot} --files-from"
    assert f"hms-bridge repl load src --into dst {command}" in str(refused.value)
    load(world, bare(world, is_origin_trusted=True))
    world.insert("t", (3, "c"))
    world.dump()
    load(world, bare(world))
    world.assert_same()


def test_places_that_are_named_count_alone(world: ReplWorld) -> None:
    world.dump()
    load(world, bare(world, is_origin_trusted=True))
    world.insert("t", (2, "b"))
    world.dump()
    with pytest.raises(OriginNotTrustedError, match="outside of /nowhere"):
        load(world, replace(world.load_request, roots=("/nowhere",)))


def test_the_source_is_asked_for_a_table_in_a_place_of_its_own(world: ReplWorld) -> None:
    places = SourcePlaces(metastore=world.source, cm_root=f"file:{world.cmroot}")
    far = world.folder / "far"
    table = world.source.get_table("src", "t")
    shutil.move(world.path("t"), far)
    moved = replace(table, storage=replace(table.storage, location=f"file:{far}"))
    world.source.alter_table("src", "t", moved)
    world.dump()
    with pytest.raises(OriginNotTrustedError):
        load(world, bare(world))
    load(world, bare(world), source=places)
    assert world.replica.rows("t") == world.rows("t")


def test_a_link_that_comes_after_the_plan_is_not_followed(world: ReplWorld) -> None:
    """As the files are copied each is looked for, and opened, anew."""
    world.dump()
    secret = world.folder.parent / f"{world.folder.name}-tenant"
    loader = world.loader()
    plan = loader.plan(world.load_request)
    table = world.path("t")
    shutil.move(table, secret)
    table.symlink_to(secret)
    try:
        with pytest.raises(ReplError, match="outside of"):
            loader.run(plan)
        assert not list((world.folder / "target").rglob("bucket_*"))
    finally:
        shutil.rmtree(secret)


def test_a_long_list_of_other_places_is_refused_without_a_look_at_each(world: ReplWorld) -> None:
    dump = Path(str(world.dump().directory).removeprefix("file:")) / "hive"
    for text in dump.rglob("_hms_bridge_*"):
        text.unlink()
    (dump / "_finished_dump").write_text("")
    (lists,) = dump.rglob("_files")
    lists.write_text("".join(f"file:/etc/no{n}###{DELTA}\n" for n in range(20_000)))
    world.is_from_hive = True
    with pytest.raises(OriginNotTrustedError, match=r"file:/etc is outside of .*lies below"):
        world.load()
