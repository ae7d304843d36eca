"""Several clients at once: what one may do is not done by two, whatever database it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from hms_bridge.client.addresses import Address
from hms_bridge.client.caller import Caller, CallSettings
from hms_bridge.clock import SystemClock
from hms_bridge.errors import HmsBridgeError
from hms_bridge.model.catalog import Database
from hms_bridge.wire.structs import hive
from tests.support.served_metastore import ServedMetastore, served_metastore
from tests.support.stored_rows import change_rows, rows_of

CLIENTS = 6
USER, ROLE = 1, 2


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedMetastore]:
    with served_metastore(tmp_path_factory.mktemp("many")) as served:
        served.metastore.create_database(Database(name="db"))
        yield served


def _all_at_once(
    served: ServedMetastore, ask: Callable[[Callable[..., Any], int], Any]
) -> list[Any]:
    """The answer that each of several clients gets, or its refusal."""

    def one(number: int) -> Any:
        settings = CallSettings(attempts=1)
        caller = Caller((Address("127.0.0.1", served.port),), settings, SystemClock())
        try:
            return ask(caller.call, number)
        except HmsBridgeError as error:
            return error
        finally:
            caller.close()

    with ThreadPoolExecutor(CLIENTS) as pool:
        return list(pool.map(one, range(CLIENTS)))


def test_a_scheduled_query_is_given_to_one(served: ServedMetastore) -> None:
    key = hive.ScheduledQueryKey(scheduleName="q", clusterNamespace="ns")
    query = hive.ScheduledQuery(
        scheduleKey=key, enabled=True, schedule="0 0 0 1 1 ? *", user="u", query="q"
    )
    request = hive.ScheduledQueryMaintenanceRequest(type=1, scheduledQuery=query)
    made = _all_at_once(
        served, lambda call, _: call("scheduled_query_maintenance", request=request)
    )
    assert made.count(None) == 1
    due = {"SCHEDULE_NAME": "q"}
    change_rows(served.database_url, "SCHEDULED_QUERIES", due, NEXT_EXECUTION=1)
    poll = hive.ScheduledQueryPollRequest(clusterNamespace="ns")
    answers = _all_at_once(served, lambda call, _: call("scheduled_query_poll", request=poll))
    assert sum(answer.query is not None for answer in answers) == 1
    assert len(rows_of(served.database_url, "SCHEDULED_EXECUTIONS")) == 1


def test_a_privilege_is_granted_once(served: ServedMetastore) -> None:
    privilege = hive.HiveObjectPrivilege(
        hiveObject=hive.HiveObjectRef(objectType=2, dbName="db"), principalName="ann",
        principalType=USER, authorizer="SQL",
        grantInfo=hive.PrivilegeGrantInfo(privilege="SELECT", grantor="hive", grantorType=USER),
    )  # fmt: skip
    bag = hive.PrivilegeBag(privileges=[privilege])
    answers = _all_at_once(served, lambda call, _: call("grant_privileges", privileges=bag))
    assert answers.count(True) == 1
    assert len(rows_of(served.database_url, "DB_PRIVS")) == 1


def test_roles_that_are_granted_at_once_make_no_circle(served: ServedMetastore) -> None:
    for number in range(CLIENTS):
        served.call("create_role", role=hive.Role(roleName=f"r{number}", ownerName="hive"))

    def ask(call: Callable[..., Any], number: int) -> Any:
        return call(
            "grant_role", role_name=f"r{number}", principal_name=f"r{(number + 1) % CLIENTS}",
            principal_type=ROLE, grantor="hive", grantorType=USER, grant_option=False,
        )  # fmt: skip

    answers = _all_at_once(served, ask)
    assert answers.count(True) == CLIENTS - 1, answers


def test_a_catalog_and_a_token_are_made_once(served: ServedMetastore) -> None:
    place = f"file:{served.warehouse}/c"
    request = hive.CreateCatalogRequest(catalog=hive.Catalog(name="c", locationUri=place))
    made = _all_at_once(served, lambda call, _: call("create_catalog", catalog=request))
    assert made.count(None) == 1
    token = {"token_identifier": "t", "delegation_token": "x"}
    added = _all_at_once(served, lambda call, _: call("add_token", **token))
    assert sorted(added) == [False] * (CLIENTS - 1) + [True]
