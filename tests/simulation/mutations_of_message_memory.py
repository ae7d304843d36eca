"""Mutations of who makes room for whose message."""

from __future__ import annotations

from tests.simulation.mutation import Mutation

_MEMORY = "hms_bridge/wire/message_memory.py"
_TEST = "tests/wire/test_message_memory.py::test_who_is_idle_makes_room_and_nobody_else"

OF_MESSAGE_MEMORY = (
    Mutation(
        name="half a message keeps the memory of others",
        file="hms_bridge/server/dispatch.py",
        within="Dispatcher.serve",
        old=(
            "MessageStream(client, "
            "message_size_bytes=self._limits.message_size_bytes_max, "
            "container_length=self._limits.container_length_max, "
            "element_count=self._limits.message_elements_max, "
            "memory=self._memory, end_if_idle=partial(self._end_if_idle, "
            "client, turns))"
        ),
        new=(
            "MessageStream(client, "
            "message_size_bytes=self._limits.message_size_bytes_max, "
            "container_length=self._limits.container_length_max, "
            "element_count=self._limits.message_elements_max, "
            "memory=self._memory)"
        ),
        test="tests/server/test_malformed_input.py::test_half_a_message_makes_room_for_a_whole_one",
    ),
    Mutation(
        name="all who are idle make room for one message",
        file=_MEMORY,
        within="MessageMemory.hold",
        old="self._sum + size_bytes <= self._limit_bytes",
        new="False",
        test=_TEST,
    ),
    Mutation(
        name="who is busy makes room for a message",
        file=_MEMORY,
        within="MessageMemory.hold",
        old="end_other()",
        new="end_other() or True",
        test=_TEST,
    ),
)
