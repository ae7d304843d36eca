"""What a mutation is: a text of a file, and what stands there instead."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Edit:
    """A text of a file and what stands there instead."""

    file: str
    old: str
    new: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Mutation:
    """`test`: the test that must fail; None where only whole clusters can show it.
    `is_simulated`: the simulated cluster must find it, too; `is_handover`: in schedules in which
    sides change places; `is_scope`: in those in which the scope of tables changes; both: in those
    in which both do. `also`: lines that hold the same promise, broken at the same time."""

    name: str
    file: str
    old: str
    new: str
    test: str | None = None
    is_simulated: bool = False
    is_handover: bool = False
    is_scope: bool = False
    also: tuple[Edit, ...] = ()

    @property
    def edits(self) -> tuple[Edit, ...]:
        """All that is broken."""
        return (Edit(self.file, self.old, self.new), *self.also)
