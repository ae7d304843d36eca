"""Who reaches a server, and who may do what there: as a process, by real sockets."""

from __future__ import annotations

import getpass
from pathlib import Path

import pytest
from thrift.Thrift import TMessageType

from hms_bridge.wire.structs import hive
from tests.support.own_address import own_address
from tests.support.program import Program, serving
from tests.support.raw_thrift import RawClient, call

KEYS = call("get_master_keys")
NO_DATABASE = ("--database", "sqlite:////no/such/folder/m.db")
"""At which a server that would begin ends."""
LOG = call("get_next_notification", rqst=hive.NotificationEventRequest(lastEvent=0, maxEvents=1))


def _asked(client: RawClient, message: bytes) -> str:
    """What a client is refused with; empty if it is answered."""
    client.send(message)
    _, kind, body = client.answer()
    thrown = body.message if kind == TMessageType.EXCEPTION else getattr(body, "o1", None)
    return str(getattr(thrown, "message", thrown) or "")


@pytest.mark.parametrize("host", ["0.0.0.0", "", "::", "192.0.2.1", "no.such.host.invalid"])
def test_a_port_that_others_reach_needs_a_word(host: str, tmp_path: Path) -> None:
    answer = Program(tmp_path).run("serve", "--host", host, "--port", "9", *NO_DATABASE)
    assert answer.exit_code == 1
    shown = host or "''"
    assert f"hms-bridge serve --host {shown} --port 9 --insecure" in answer.err


@pytest.mark.parametrize("host", ["localhost", "127.0.0.2", "::1"])
def test_a_port_of_this_machine_needs_none(host: str, tmp_path: Path) -> None:
    answer = Program(tmp_path).run("serve", "--host", host, "--port", "0", *NO_DATABASE)
    assert answer.exit_code == 1
    assert "cannot open /no/such/folder" in answer.err


@pytest.mark.process
def test_a_stranger_gets_no_key_and_a_proxy_user_from_its_host_does(tmp_path: Path) -> None:
    """One server, three connections: from loopback, and two from another address."""
    address = own_address()
    program = Program(tmp_path, {"hadoop.proxyuser.hue.hosts": f"192.0.2.7, {address}"})
    words = ("--port", "0", "--host", "0.0.0.0", "--insecure")
    with serving(program, *words) as server:
        port = int(server.wait_until_ready().rpartition(":")[2])
        with (
            RawClient(port) as near,
            RawClient(port, address) as far,
            RawClient(port, address) as hue,
        ):
            assert (_asked(near, KEYS), _asked(near, LOG)) == ("", "")
            for name in ("mallory", "hue"):
                client = hue if name == "hue" else far
                client.send(call("set_ugi", user_name=name, group_names=[]))
                assert client.answer()[1] == TMessageType.REPLY
            assert (_asked(hue, KEYS), _asked(hue, LOG)) == ("", "")
            refused = _asked(far, KEYS)
            line = f"<name>hadoop.proxyuser.mallory.hosts</name><value>{address}</value>"
            assert "User mallory is not allowed to perform this API call" in refused
            assert line in refused
            assert "get_master_keys" in refused
            of_log = _asked(far, LOG)
            assert line in of_log
            assert "<name>hive.metastore.event.db.notification.api.auth</name>" in of_log
            assert _asked(far, call("get_all_databases")) == ""
            far.send(call("set_ugi", user_name=getpass.getuser(), group_names=[]))
            far.answer()
            assert _asked(far, LOG) == "", "the server's own user reads the log"
            assert "not allowed" in _asked(far, KEYS), "its name alone gives no keys"
    said = "\n".join(server.lines)
    assert "insecure: nobody is authenticated at thrift://0.0.0.0:" in said
    assert "proxy users (hue from its hosts)" in said
    assert "refused get_master_keys of user 'mallory'" in said


@pytest.mark.process
def test_hosts_that_mean_nothing_stop_the_start(tmp_path: Path) -> None:
    program = Program(tmp_path, {"hadoop.proxyuser.hue.hosts": "10.0.0.0/99"})
    answer = program.start("serve", "--port", "0", seconds=20)
    assert answer.exit_code == 1
    assert "hadoop.proxyuser.hue.hosts: '10.0.0.0/99'" in answer.err
