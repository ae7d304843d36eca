"""What a source's archive keeps for a policy's next dump, and how that ends with the policy."""

from __future__ import annotations

from hms_bridge.cli.kept_policy import being_removed
from hms_bridge.cli.output import say
from hms_bridge.cli.sides import side_settings, side_url, source_side
from hms_bridge.clock import SystemClock
from hms_bridge.errors import HmsBridgeError
from hms_bridge.model.replication import ReplicationPolicy


def let_go(policy: ReplicationPolicy, store_url: str) -> str:
    """Nothing more is held for the next dump of a policy; what became of that, for people.

    Dumps that wait go on holding the files that they name. A source that cannot be asked does not
    keep anybody from forgetting its policy: the text names the command that is left to do there.
    """
    from hms_bridge.config.file_systems import file_systems
    from hms_bridge.repl.pins import DumpPins

    try:
        settings = side_settings(policy.source)
        root = file_systems(settings)(policy.root).uri
        with source_side(side_url(policy.source, store_url), settings) as (_, manifest):
            if manifest is None:
                return _by_hand(policy, "the manifest of its archive is out of reach over thrift")
            pins = DumpPins(
                manifest=manifest,
                clock=SystemClock(),
                database=policy.source.database.lower(),
                root=root,
            )
            was_held = pins.end()
    except (HmsBridgeError, OSError) as error:
        return _by_hand(policy, f"its source cannot be reached ({error})")
    except KeyboardInterrupt:
        say(being_removed(policy.name))
        raise
    if not was_held:
        return "the source's archive held nothing for its next dump"
    return "the source's archive holds nothing more for its next dump"


def still_held(before: ReplicationPolicy, after: ReplicationPolicy) -> str | None:
    """What a policy leaves behind that dumps another database, or elsewhere, from now on; None if
    it does not. Dumps may have been moved with it, so what they need stays held."""
    is_same_source = before.source.database.lower() == after.source.database.lower()
    if is_same_source and before.root == after.root:
        return None
    return _by_hand(before, f"it dumped {before.source.database} to {before.root} until now")


def _by_hand(policy: ReplicationPolicy, why: str) -> str:
    from hms_bridge.config.file_systems import file_systems
    from hms_bridge.repl.pins import policy_holder

    database = policy.source.database.lower()
    try:
        root = file_systems(side_settings(policy.source))(policy.root).uri
    except (HmsBridgeError, OSError):
        root = policy.root
    return (
        f"{why}, so what the source's archive holds for its next dump stays, for "
        "hms.bridge.repl.archive.budget at most. There, to end that: "
        f"'cm release {policy_holder(database, root)}'"
    )
