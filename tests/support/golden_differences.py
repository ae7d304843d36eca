"""Where we answer otherwise than a real Hive 4.0.1 did when its calls were recorded, and why: each
mask is named by its reason, with the numbers of its calls. A test finds those that mask nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

APART: Mapping[int, str] = {
    534: "the next call sets the counter of transactions back, a fault of Hive's: played on a "
    "server of its own, since here all later ids would be above 2000",
}
"""Calls that are played and compared, but not among the others."""

NOT_PLAYED: Mapping[int, str] = {}
"""Calls that cannot be played, and why: none."""

UNRECORDED: Mapping[str, str] = dict.fromkeys(
    ("reinitialize", "shutdown"), "nothing is answered: they are sent one way"
)
"""Methods that are answered and that no recording has a call of, and why. Other tests call them
(tests/server/test_calls.py holds that)."""

WITHOUT_ORDER: Mapping[str, str] = {
    **dict.fromkeys(
        (
            "get_all_packages", "get_all_tables", "get_table_meta", "get_table_names_by_filter",
            "get_table_objects_by_name_req", "get_tables", "get_tables_ext",
        ),
        "Hive's database gives them in the order of their rows, ours by name",
    ),
    **dict.fromkeys(
        ("alter_resource_plan", "get_resource_plan"),
        "Hive gives what a plan has in the order of a hash map, another one each time",
    ),
}  # fmt: skip
"""Methods whose answers are compared as sets of tables, or of what else they list."""

# One of both is an error, or both are, of different wire classes.
OTHER_OUTCOME: Mapping[str, tuple[int, ...]] = {
    "a longer name than can be stored is an invalid object, not a database's failure": (52, 101),
    "as invalid is a column that is there twice": (102,),
    "ignoreUnknownDb is obeyed": (78,),
    "a managed ACID table needs no capabilities of its client": (80,),
    "get_table is still there": (126,),
    "get_table_objects_by_name, too, and refuses what its client cannot read": (134,),
    "a table's name that was not sent is asked for, and the connection stays": (131,),
    "another id of the table than its own closes no connection": (132,),
    "Java's unchecked exceptions are clear refusals": (
        159, 460, 461, 463, 467, 491, 492, 505,
        1136, 1158, 1165, 1214, 1251, 1255, 1267,
        2138, 2145, 2171, 2178, 2227, 2264, 2268, 2280),
    "what is there already is told as such, not by the database after ten attempts": (
        1206, 1210, 1228, 1249, 2219, 2223, 2241, 2262),
    "nothing is locked in a transaction that has ended": (490,),
    "a lock for an operation that was not told counts as one for an update": (551, 552),
    "only what is there is compacted": (591, 592),
    "mark_cleaned of a table without partitions fails on PostgreSQL, in Hive": (606, 607),
    "types, which no SQL makes or reads, are not offered": (627, 628, 629, 630, 631),
    "who issues delegation tokens needs SASL, which is not offered": (639,),
    "the registry of schemas, which Hive itself does not use, is not offered": (
        645, 646, 647, 648, 649, 650, 651),
    "Hive's cache of file metadata, of which it has no implementation, is not offered": (667, 668),
    "keys in upper case are understood": (229,),
    "an unknown table is told as such": (187, 236, 241, 1096, 1097, 2100, 2101),
    "an unknown table is one error in all calls of statistics": (1125, 2129),
    "a catalog that was not sent is the default one": (1098, 2102),
    "a transactional table is truncated in a transaction only": (186,),
    "no expression means all": (242,),
    "filters allow more: in, not, is null": (270, 271, 274, 275, 290, 291),
    "concat is no function of a partition condition": (309,),
    "a key that is no partition column is told as such": (333,),
    "an unknown column of a key, or constraint, is told as such": (387, 402),
    "a column without statistics is told as such": (407, 2134),
    "what lies in no table's directory is not archived": (666,),
    "create_dataconnector is still there": (654, 655),
    "alter_dataconnector, too": (1032, 2036),
    "the name of a data connector is a word": (1025, 2029),
    "databases over data connectors are not kept": (1033, 1037, 2037, 2041),
    "nothing is kept of a transaction that is not open": (1283, 1285, 1316, 2298, 2332),
    "deltas are counted of tables that are there": (1307, 2323),
    "a master key that is not there is told by the exception that is declared for it": (
        1196, 2209),
    "a policy of replication has a name": (2300,),
    "a resource plan without a namespace is found again": (641, 644),
    "the lock of a rebuild that is not there is not renewed": (626,),
    "who updates what another one has updated meanwhile is refused": (560,),
}  # fmt: skip


@dataclass(frozen=True)
class Known:
    """A difference with a reason, in some calls: the ends of its places, after the method or the
    type of the event. Each place and each call has one."""

    reason: str
    places: tuple[str, ...]
    calls: tuple[int, ...]

    def place_in(self, number: int, place: str) -> str | None:
        """Which of its places covers a difference there."""
        if number not in self.calls:
            return None
        here = (known for known in self.places if place == known or place.endswith(f".{known}"))
        return next(here, None)


# Both are answered; what differs in the answers, or in the events that are logged.
OTHER_FIELDS = (
    Known("who we are", ("getName.", "getVersion."), (1, 2)),
    Known("each database has an id of its own", ("get_metastore_db_uuid.",), (4,)),
    Known("files of a new table are counted, in a directory that is made for it, too",
          ("numFiles", "totalSize", "numFilesErasureCoded"),
          (81, 83, 84, 86, 87, 88, 89, 90, 95, 97, 98, 104, 106, 108, 111, 112, 113, 114, 116, 117,
           118, 119, 122, 123, 124, 127, 129, 133, 135, 139, 158, 173, 174, 190, 192, 380, 381,
           403, 404, 405, 424, 425, 430, 581, 671,
           1041, 2003, 2044, 2045, 2048, 2049, 2050, 2051, 2053, 2055, 2058, 2059, 2062, 2304)),
    Known("managed tables stay managed",
          ("tableType", "EXTERNAL", "TRANSLATED_TO_EXTERNAL", "external.table.purge",
           "tableObjJson.12.str", "tableObjJson.7.rec.2.str", "tableObjBeforeJson.12.str",
           "tableObjBeforeJson.7.rec.2.str", "sd.location", "catName", "get_tables_by_type."),
          (88, 89, 106, 118, 119, 123, 150, 151, 155, 172, 174, 671)),
    Known("a managed ACID table needs no capabilities of its client", ("events",), (80,)),
    Known("an owner that was not given is not made up",
          ("ownerName", "ownerType", "dbJson.6", "dbJson.7"),
          (32, 36, 37, 41, 42, 49, 50, 51, 73, 74, 75, 76, 77, 616, 619, 2015, 2017, 2020)),
    Known("the database's own place was made before the server started", ("locationUri",),
          (28, 2017, 2020)),
    Known("the place that was asked for is that of the database", ("locationUri",), (76,)),
    Known("a database's type is always told", ("dbJson.11",),
          (32, 36, 46, 49, 50, 51, 73, 75, 616, 2001, 2013, 2015)),
    Known("all of an altered database is told, also what the client did not send",
          tuple(f"dbObjAfterJson.{field}" for field in
                ("1.str", "2", "3", "7", "8", "9", "10", "11")), (2021, 2024)),
    Known("names are told as they are kept",
          ("CREATE_DATABASE.dbName", "events.dbName", "message.db", "dbJson.1.str"),
          (46, 616, 2013)),
    Known("a function's catalog is always told", ("functionObjJson.9",),
          (366, 2154, 2155)),
    Known("no write id is told as such",
          ("partitionListJson.10", "append_partition.writeId", "append_partition_by_name.writeId",
           "append_partition_by_name_with_environment_context.writeId",
           "append_partition_req.writeId", "append_partition_with_environment_context.writeId"),
          (214, 216, 1063, 1068, 1073, 1074, 2067, 2072, 2077, 2078)),
    Known("a new partition is answered as it is kept",
          ("sd.skewedInfo", "sd.storedAsSubDirectories"), (196, 198, 202, 203, 205, 209, 213)),
    Known("SerDes of ACID tables come without parameters, in lists, too",
          ("sd.serdeInfo.parameters.serialization.format",),
          (232, 233, 237, 238, 243, 252, 254, 297, 299, 357)),
    Known("several partitions are one event, as since Hive 4.1", ("events",), (340, 341, 365)),
    Known("what Hive 4.0.1 changes and tells nobody of: a replica would not hear of it",
          ("events",), (67, 185, 352, 529, 567)),
    Known("who updates what another one has updated meanwhile is refused", ("events",), (560,)),
    Known("of a table that was emptied it is known that it has no rows",
          ("map.COLUMN_STATS_ACCURATE",), (671,)),
    Known("with a file stands where it is archived", ("INSERT.message.files",), (581,)),
    Known("there were events of calls that were not recorded",
          ("get_notification_events_count.eventsCount",), (620, 622)),
    Known("whose write ids, and in which databases, as since Hive 4.1",
          ("message.writeIds", "message.databases"),
          (482, 485, 502, 512, 514, 516, 520, 521, 528, 554, 559, 566, 573, 579, 586, 603)),
    Known("of a partition only the column statistics are told",
          ("parameters.transient_lastDdlTime", "COLUMN_STATS_ACCURATE.BASIC_STATS",
           "message.parameters.v", "message.parameters.numFiles", "message.parameters.totalSize",
           "message.parameters.numFilesErasureCoded"),
          (414, 415, 421, 422, 2124, 2125, 2126, 2128)),
    Known("that statistics are gone is told once, if they were there",
          ("delete_column_statistics_req.events",), (2133, 2134, 2135, 2137)),
    Known("constraints are told in another order", ("create_table_with_constraints.events",),
          (2059,)),
    Known("a property that was given is kept", ("map.transactional",), (2304,)),
    Known("databases over data connectors are not kept", ("create_database_req.events",), (2037,)),
    Known("the name of a data connector is a word", ("get_dataconnectors.",),
          (1026, 1030, 1039, 2030, 2034, 2043)),
    Known("when a server started", ("aliveSince.",), (1004, 2004)),
    Known("calls are counted by the server's metrics",
          ("getCounters.create_database_req", "getCounters.create_table_req"), (1006, 2006)),
    Known("what has no value is an empty text, not an answer without result", ("getOption.",),
          (1009, 2009)),
    Known("why it was aborted is told without Hive's slips of the pen", ("compacts.errorMessage",),
          (1295, 1302, 1315, 2311, 2318, 2331)),
    Known("what never started has no start", ("compacts.start",),
          (1295, 1302, 1315, 2311, 2318, 2331)),
    Known("tables in a list tell the access, too", ("tables.accessType",), (135,)),
    Known("concat is no function of a partition condition: all, perhaps",
          ("partitions", "hasUnknownPartitions"), (307, 308)),
    Known("the filter is obeyed, too, if all fields are wanted",
          ("sharedSDPartitionSpec.partitions",), (335,)),
    Known("what a client says of itself is kept", ("open_txns.agentInfo",), (453, 503)),
    Known("a list of write ids never ends early",
          ("invalidWriteIds", "writeIdHighWaterMark"), (466, 469, 530)),
    Known("statistics that were merged are said to be", ("set_aggr_stats_for.",), (422,)),
    Known("create_dataconnector is still there", ("get_dataconnectors.",), (656,)),
    Known("a resource plan without a namespace is found again", ("resourcePlans",), (642,)),
    Known("settings of this server are told as they are set; of others, the client's default",
          ("get_config_value.",), (6, 7, 8)),
    Known("why it was aborted is told, as since Hive 4.1", ("open_txns.metaInfo",), (503,)),
    Known("a replayed transaction is told of by its own id, not by the source's",
          ("ABORT_TXN.message.txnid", "ABORT_TXN.message.dbsUpdated"), (521,)),
    Known("551 and 552 got locks here", ("lock.lockid",), (553,)),
    Known("asking for a compaction, and its failure, are events of ours",
          ("events",), (588, 590, 593, 609, 2309, 2315)),
    Known("a worker is told all of its entry; in Hive its state is NUL",
          ("ci.enqueueTime", "ci.runas", "ci.start", "ci.state", "ci.workerId"),
          (595, 596, 610, 612, 1300, 2316)),
    Known("the highest write id of a compaction is told, as since Hive 4.1",
          ("compacts.hightestWriteId",), (604, 608, 613, 1315, 2331)),
    Known("mark_cleaned of a table without partitions fails on PostgreSQL, in Hive",
          ("compacts.state", "compacts.endTime"), (608, 613)),
    Known("between 554 and 555 calls were not recorded; all else of the log is compared call by "
          "call, and by test_the_whole_log_is_what_each_call_logged",
          ("get_next_notification.events",), (617,)),
)  # fmt: skip

# Both throw the same class; why its message is another.
OTHER_MESSAGES: Mapping[str, tuple[int, ...]] = {
    "names the types that there are": (154,),
    "says how many values there must be": (253,),
    "names the field that was not sent": (48, 58, 72, 96, 99, 194, 224, 1076, 1117, 2080, 2121),
    "a NullPointerException: what the table lacks is told": (107,),
    "names the table, and what its client lacks": (115, 128),
    "says what to send": (137, 163, 356),
    "what is missing is told once": (138, 211, 223),
    "names the partition, in place of all its fields as Java prints them": (
        197, 204, 207, 210, 215, 1064, 1069, 1075, 1081, 1082, 2068, 2073, 2079, 2085, 2086),
    "names the table's partition columns": (217, 351, 1070, 1108, 2074, 2112),
    "names the table, with its catalog": (
        1048, 1060, 1067, 1072, 1077, 1078, 1091, 1105, 1112, 1113, 1118,
        2052, 2064, 2071, 2076, 2081, 2082, 2095, 2109, 2116, 2117, 2122),
    "names table and column": (1059, 2063),
    "what is missing is told in the same words everywhere": (
        1016, 1031, 1035, 1038, 1137, 1138, 1143, 1176, 1177, 1184, 1208, 1223, 1244,
        2016, 2035, 2039, 2042, 2146, 2147, 2152, 2189, 2190, 2197, 2221, 2236, 2257),
    "names the mapping": (1258, 2271),
    "the same errors as a list without brackets": (1261, 2274),
    "one word is another": (1066, 2070),
    "says how a partition is named": (218, 228, 1071, 2075),
    "of the parser that stands here, with place and text": (
        272, 273, 284, 285, 328, 1104, 1173, 2108, 2186),
    "says that the partition is missing": (342,),
    "names the partitions that are missing": (
        353, 355, 358, 416, 1090, 1107, 1110, 1111, 1116, 1123,
        2094, 2111, 2114, 2115, 2120, 2127),
    "tables are named without the default catalog": (383,),
    "says what to do": (391, 1167, 2180),
    "without the name of a Java class, and whose privilege it is": (
        432, 439, 443, 1150, 1151, 1157, 2163, 2164, 2170),
    "Java's unchecked exceptions have no message; ours says why": (
        454, 455, 525, 527, 546, 582, 1298, 2314),
    "raw SQL; ours says why": (532, 2296),
}  # fmt: skip
