"""Which callers a call is answered to: classes of methods, hosts of proxy users, identities."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager

import pytest
from thrift.Thrift import TMessageType

from hms_bridge.config.access import AccessSettings
from hms_bridge.config.reading import settings_from
from hms_bridge.errors import ConfigError, MetaError
from hms_bridge.server import verb_classes
from hms_bridge.server.crowd import STREAK
from hms_bridge.server.gate import Gate
from hms_bridge.server.identity import CallerIdentity, identity_of
from hms_bridge.server.serve import MetastoreServer, offered_names
from hms_bridge.server.verb_classes import CLASSES, VerbClass, class_of
from hms_bridge.wire.methods import all_names, method
from tests.support.fake_metastore import FakeMetastore
from tests.support.guests import heartbeat
from tests.support.own_address import own_address
from tests.support.raw_thrift import RawClient, call

OWN_USER = "hmsbridge"
FAR = "10.1.2.3"
GUARDED = sorted(name for name in offered_names() if class_of(name) is not VerbClass.OPEN)
EVENT_ID = call("get_current_notificationEventId")


def _gate(resolve: dict[str, list[str]] | None = None, **settings: str) -> Gate:
    def resolved(host: str) -> list[str]:
        if host not in (resolve or {}):
            raise OSError(f"{host} is not known")
        return (resolve or {})[host]

    given = {name.replace("__", "."): value for name, value in settings.items()}
    return Gate(settings_from(given).access, OWN_USER, resolved)


def _passes(gate: Gate, identity: CallerIdentity, name: str = "get_master_keys") -> bool:
    try:
        gate.require(identity, name, class_of(name))
    except MetaError:
        return False
    return True


def _far(user: str = "", address: str = FAR) -> CallerIdentity:
    return CallerIdentity(address=address, user=user)


@contextmanager
def _served(gate: Gate | None = None, peer: CallerIdentity | None = None) -> Iterator[int]:
    """A server whose clients seem to come from elsewhere."""
    fake = FakeMetastore(heartbeat=None, get_current_event_id=7, get_master_keys=("k",))
    with MetastoreServer(
        0, fake, gate=gate, identify=lambda _: peer or _far()  # type: ignore[arg-type]
    ) as server:  # fmt: skip
        yield server.port


def _refusal(client: RawClient, message: bytes) -> str:
    client.send(message)
    name, kind, body = client.answer()
    thrown = [body] if kind == TMessageType.EXCEPTION else []
    fields = method(name).exceptions.values() if kind == TMessageType.REPLY else ()
    thrown += [getattr(body, field) for field in fields if getattr(body, field) is not None]
    return "".join(str(error.message) for error in thrown)


def _name(client: RawClient, user: str) -> None:
    client.send(call("set_ugi", user_name=user, group_names=[]))
    assert client.answer()[1] == TMessageType.REPLY


def test_each_method_has_one_class() -> None:
    assert set(CLASSES) == set(all_names())
    assert sum(len(names.split()) for names in verb_classes.NAMES.values()) == len(CLASSES)
    assert class_of("a_method_of_tomorrow") is VerbClass.TRUSTED


def test_what_acts_as_another_user_is_for_trusted_hosts() -> None:
    """HiveServer2 runs a scheduled query as the user that whoever made it named."""
    assert class_of("scheduled_query_maintenance") is VerbClass.TRUSTED


def test_no_method_without_an_answer_is_guarded() -> None:
    """The gate would have no way to refuse it."""
    for name in GUARDED:
        assert method(name).result is not None


@pytest.mark.parametrize("name", GUARDED)
def test_a_stranger_is_refused_before_its_request_is_looked_at(name: str) -> None:
    with _served() as port, RawClient(port) as client:
        refused = _refusal(client, call(name))
        assert "is not allowed to perform this API call" in refused
        assert f"<name>hadoop.proxyuser.USER.hosts</name><value>{FAR}</value>" in refused
        assert ("notification.api.auth" in refused) == (class_of(name) is VerbClass.LOG)
        assert _refusal(client, heartbeat()) == "", "the connection goes on"


@pytest.mark.parametrize(
    ("hosts", "address", "is_proxy"),
    [
        ("*", FAR, True),
        ("*, 10.9.9.9", FAR, False),
        ("10.9.9.9, 10.1.2.3", FAR, True),
        ("10.1.2.0/24", FAR, True),
        ("10.1.3.0/24", FAR, False),
        ("edge", FAR, True),
        ("edge", "10.1.2.4", False),
        ("nowhere, edge", FAR, True),
        ("nowhere", FAR, False),
        ("", FAR, False),
        ("fd00::7", "fd00::7", True),
        ("fd00::/64", "fd00::8", True),
        ("10.1.2.3", "fd00::7", False),
    ],
)
def test_hosts_of_a_proxy_user_are_read_as_hadoop_reads_them(
    hosts: str, address: str, is_proxy: bool
) -> None:
    gate = _gate({"edge": [FAR, "::ffff:10.1.2.9"]}, hadoop__proxyuser__hue__hosts=hosts)
    assert _passes(gate, _far("hue", address)) is is_proxy
    assert _passes(gate, _far("hue", address), "get_next_notification") is is_proxy
    assert not _passes(gate, _far("mallory", address))


def test_groups_and_users_alone_make_no_proxy_user() -> None:
    gate = _gate(hadoop__proxyuser__hue__groups="*", hadoop__proxyuser__hue__users="*")
    assert not _passes(gate, _far("hue"))


def test_a_caller_without_a_name_counts_as_the_servers_own_user() -> None:
    """As in Hive; by its hosts, and not by the name that it did not give."""
    own = {f"hadoop__proxyuser__{OWN_USER}__hosts": FAR}
    assert _passes(_gate(**own), _far())
    assert not _passes(_gate(**own), _far(address="10.1.2.4"))
    assert not _passes(_gate(), _far(), "get_next_notification")


def test_the_log_is_open_to_the_own_user_or_to_everybody_if_so_set() -> None:
    assert _passes(_gate(), _far(OWN_USER), "get_next_notification")
    assert not _passes(_gate(), _far(OWN_USER), "get_master_keys")
    everybody = _gate(hive__metastore__event__db__notification__api__auth="false")
    assert _passes(everybody, _far("mallory"), "get_next_notification")
    assert not _passes(everybody, _far("mallory"), "get_master_keys")
    assert "the event log is for everybody" in everybody.open_to
    assert "(hue from any host)" in _gate(hadoop__proxyuser__hue__hosts="*").open_to


def test_a_client_that_is_gone_is_nobody() -> None:
    gate = _gate(hadoop__proxyuser__hue__hosts="10.0.0.0/8")
    assert not _passes(gate, CallerIdentity(user="hue"))


@pytest.mark.parametrize("hosts", ["10.0.0.0/99", "10.0.0.1/x", "fd00::/200"])
def test_a_block_that_is_none_is_refused_by_its_name(hosts: str) -> None:
    with pytest.raises(ConfigError, match=r"hadoop\.proxyuser\.hue\.hosts"):
        _gate(hadoop__proxyuser__hue__hosts=hosts)


def test_a_name_that_a_client_gives_is_shown_short_and_makes_no_line() -> None:
    with _served() as port, RawClient(port) as client:
        _name(client, "<x>" * 100_000)
        refused = _refusal(client, EVENT_ID)
    assert len(refused) < 900
    assert "hadoop.proxyuser.USER.hosts" in refused


def test_everything_is_answered_to_this_machine() -> None:
    near = CallerIdentity(address="127.0.0.1", is_of_this_machine=True, user="anybody")
    with _served(peer=near) as port, RawClient(port) as client:
        assert _refusal(client, EVENT_ID) == _refusal(client, call("get_master_keys")) == ""
    gate = Gate(AccessSettings(), own_user="")
    assert all(_passes(gate, near, name) for name in GUARDED)


def test_each_of_many_clients_of_one_thread_has_its_own_identity() -> None:
    """Clients of two users whose calls one thread makes; each asks for what one of them may see,
    again and again between such calls."""
    gate = _gate(hadoop__proxyuser__hue__hosts=FAR)
    with _served(gate) as port, ExitStack() as stack:
        clients = [stack.enter_context(RawClient(port)) for _ in range(50)]
        for number, client in enumerate(clients):
            _name(client, "hue" if number % 2 else "mallory")
        for _ in range(3):
            for _ in range(STREAK + 1):
                for client in clients:
                    client.send(heartbeat())
                for client in clients:
                    assert client.answer()[1] == TMessageType.REPLY
            for number, client in enumerate(clients):
                refused = _refusal(client, EVENT_ID)
                assert ("mallory is not allowed" in refused) is (number % 2 == 0)
        _name(clients[1], "mallory")
        assert "mallory is not allowed" in _refusal(clients[1], EVENT_ID)
        assert _refusal(clients[3], EVENT_ID) == ""


@pytest.mark.parametrize(
    ("family", "host", "to", "address"),
    [
        (socket.AF_INET, "127.0.0.1", "127.0.0.1", "127.0.0.1"),
        (socket.AF_INET, "127.0.0.2", "127.0.0.2", "127.0.0.1"),
        (socket.AF_INET6, "::1", "::1", "::1"),
        (socket.AF_INET6, "::", "::ffff:127.0.0.1", "127.0.0.1"),
    ],
)
def test_loopback_is_of_this_machine_in_every_notation(
    family: socket.AddressFamily, host: str, to: str, address: str
) -> None:
    with closing(socket.socket(family, socket.SOCK_STREAM)) as listener:
        listener.bind((host, 0))
        listener.listen()
        with closing(socket.create_connection((to, listener.getsockname()[1]))):
            accepted, _ = listener.accept()
            with closing(accepted):
                identity = identity_of(accepted)
    assert identity.is_of_this_machine
    assert identity.user == ""
    assert identity.address.startswith(address.rpartition(".")[0])


def test_a_connection_from_another_address_is_a_strangers() -> None:
    """By a real socket: what comes to loopback from an address that others can have."""
    address = own_address()
    fake = FakeMetastore(get_current_event_id=7)
    with (
        MetastoreServer(0, fake) as server,  # type: ignore[arg-type]
        RawClient(server.port, address) as far,
        RawClient(server.port) as near,
    ):
        assert f"came from {address}" in _refusal(far, EVENT_ID)
        assert _refusal(near, EVENT_ID) == ""


def test_a_socket_of_the_file_system_is_of_this_machine() -> None:
    left, right = socket.socketpair()
    with closing(left), closing(right):
        assert identity_of(left) == CallerIdentity(is_of_this_machine=True)


def test_a_socket_whose_client_is_gone_is_of_nobody() -> None:
    with closing(socket.socket()) as alone:
        assert identity_of(alone) == CallerIdentity()
