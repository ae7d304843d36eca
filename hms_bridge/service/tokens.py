"""Verbs of delegation tokens and master keys."""

from __future__ import annotations

from hms_bridge.backend.work import sql
from hms_bridge.catalog import tokens
from hms_bridge.hooks import changes
from hms_bridge.service.foundation import VerbFamily
from hms_bridge.service.unit_of_work import UnitOfWork, reads, writes


def _add_token(unit: UnitOfWork, identifier: str, token: str) -> bool:
    is_added = tokens.add_token(unit.connection, identifier, token)
    if is_added:
        unit.points.append(changes.token_changed("add", identifier))
    return is_added


def _remove_token(unit: UnitOfWork, identifier: str) -> bool:
    is_removed = tokens.remove_token(unit.connection, identifier)
    if is_removed:
        unit.points.append(changes.token_changed("remove", identifier))
    return is_removed


def _add_master_key(unit: UnitOfWork, key: str) -> int:
    number = tokens.add_master_key(unit.connection, key)
    unit.points.append(changes.master_key_changed("add", number))
    return number


def _update_master_key(unit: UnitOfWork, number: int, key: str) -> None:
    tokens.update_master_key(unit.connection, number, key)
    unit.points.append(changes.master_key_changed("update", number))


def _remove_master_key(unit: UnitOfWork, number: int) -> bool:
    is_removed = tokens.remove_master_key(unit.connection, number)
    if is_removed:
        unit.points.append(changes.master_key_changed("remove", number))
    return is_removed


class TokenVerbs(VerbFamily):
    """The ServedTokens."""

    add_token = writes(_add_token)
    get_token = reads(sql(tokens.get_token))
    remove_token = writes(_remove_token)
    get_token_identifiers = reads(sql(tokens.token_identifiers))
    add_master_key = writes(_add_master_key)
    update_master_key = writes(_update_master_key)
    remove_master_key = writes(_remove_master_key)
    get_master_keys = reads(sql(tokens.master_keys))
