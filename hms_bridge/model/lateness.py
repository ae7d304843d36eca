"""Whether a policy of replication is late, and whether that was found out already. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Watch:
    """From when on the next success of a policy is waited for, and when it was found to be late."""

    since_ms: int
    late_at_ms: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class LatePolicy:
    """A policy that is late. ``since_ms``: from when on its next success is waited for."""

    policy: str
    since_ms: int
    last_success_ms: int | None
    late_after_ms: int


def next_watch(
    watch: Watch | None, *, is_paused: bool, last_success_ms: int | None, now_ms: int, late_ms: int
) -> Watch | None:
    """What is to be kept from now on: None for a policy that is paused, which is waited for anew
    when it goes on. It is late where ``late_at_ms`` becomes now.

    One that was never seen before is waited for from now on: how long it was at work, nobody knows.
    So is one that was seen in the future, by a clock that was set back since; nor is a success
    believed that is yet to come. Else nobody would hear of it until that time has come.
    """
    if is_paused:
        return None
    if watch is None or watch.since_ms > now_ms:
        return Watch(since_ms=now_ms)
    if last_success_ms is not None and watch.since_ms < last_success_ms <= now_ms:
        watch = Watch(since_ms=last_success_ms)
    if watch.late_at_ms is None and now_ms - watch.since_ms > late_ms:
        return Watch(since_ms=watch.since_ms, late_at_ms=now_ms)
    return watch
