"""Verbs of delegation tokens and master keys."""

from __future__ import annotations

from hms_bridge.backend.work import sql
from hms_bridge.catalog import tokens
from hms_bridge.service.foundation import VerbFamily
from hms_bridge.service.unit_of_work import reads, writes


class TokenVerbs(VerbFamily):
    """The ServedTokens."""

    add_token = writes(sql(tokens.add_token))
    get_token = reads(sql(tokens.get_token))
    remove_token = writes(sql(tokens.remove_token))
    get_token_identifiers = reads(sql(tokens.token_identifiers))
    add_master_key = writes(sql(tokens.add_master_key))
    update_master_key = writes(sql(tokens.update_master_key))
    remove_master_key = writes(sql(tokens.remove_master_key))
    get_master_keys = reads(sql(tokens.master_keys))
