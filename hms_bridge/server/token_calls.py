"""Delegation tokens and master keys, which other services keep in a metastore. None is issued here:
that needs an authenticated connection."""

from __future__ import annotations

from hms_bridge.server.answers import Calls, answers
from hms_bridge.server.served_rights import ServedTokens
from hms_bridge.wire.required import given
from hms_bridge.wire.structs import Struct


class TokenCalls(Calls[ServedTokens]):
    """Texts that mean nothing here."""

    @answers("add_token")
    def add_token(self, args: Struct) -> bool:
        identifier = given(args.token_identifier, "token_identifier")
        return self._store.add_token(identifier, given(args.delegation_token, "delegation_token"))

    @answers("get_token")
    def get_token(self, args: Struct) -> str:
        """Empty for one that is not there."""
        token = self._store.get_token(given(args.token_identifier, "token_identifier"))
        return token or ""

    @answers("remove_token")
    def remove_token(self, args: Struct) -> bool:
        return self._store.remove_token(given(args.token_identifier, "token_identifier"))

    @answers("get_all_token_identifiers")
    def identifiers(self, _: Struct) -> list[str]:
        return list(self._store.get_token_identifiers())

    @answers("add_master_key")
    def add_key(self, args: Struct) -> int:
        return self._store.add_master_key(given(args.key, "key"))

    @answers("update_master_key")
    def update_key(self, args: Struct) -> None:
        number = given(args.seq_number, "seq_number")
        self._store.update_master_key(number, given(args.key, "key"))

    @answers("remove_master_key")
    def remove_key(self, args: Struct) -> bool:
        return self._store.remove_master_key(given(args.key_seq, "key_seq"))

    @answers("get_master_keys")
    def keys(self, _: Struct) -> list[str]:
        return list(self._store.get_master_keys())
