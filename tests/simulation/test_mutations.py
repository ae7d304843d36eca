"""The list of mutations fits the code; `make mutants` tries them."""

from __future__ import annotations

import pytest

from tests.simulation.mutants import ROOT
from tests.simulation.mutation import Edit, Mutation, StaleMutationError
from tests.simulation.mutations import MUTATIONS
from tests.support.rules import holds_for


@holds_for(MUTATIONS, name=lambda mutation: mutation.name)
def test_each_breaks_a_line_that_is_there_once(mutation: Mutation):
    for edit in mutation.edits:
        text = (ROOT / edit.file).read_text(encoding="utf-8")
        compile(edit.applied(text), edit.file, "exec")
    assert mutation.test or mutation.is_simulated
    if mutation.test:
        file, _, test = mutation.test.partition("::")
        test = test.rpartition("::")[2]
        place = ROOT / file
        assert place.exists()
        assert not test or f"def {test}(" in place.read_text(encoding="utf-8")


def test_each_has_a_name_of_its_own() -> None:
    names = [mutation.name for mutation in MUTATIONS]
    assert len(set(names)) == len(names)


TEXT = """
class Look:
    def still(self):
        # asked anew
        if (
            self.is_late
            or other
        ):
            return 1
        call(self.is_late)
    def other(self):
        call(1)
"""


@pytest.mark.parametrize(
    ("within", "old", "new", "line"),
    [
        ("Look.still", "self.is_late or other", "other", "        if other:"),
        ("Look.still", "if self.is_late or other: ...", "if 2: ...", "        if 2:"),
        ("Look.still", "return 1\n", "raise", "            raise"),
        ("Look.still", "return 1", "", "            pass"),
        ("Look.other", "call(1)", "call(2)", "        call(2)"),
        ("Look", "call(1)", "call(2)", "        call(2)"),
    ],
)
def test_code_is_found_however_it_is_laid_out(within: str, old: str, new: str, line: str) -> None:
    assert line in Edit("look.py", within, old, new).applied(TEXT).splitlines()


@pytest.mark.parametrize(("within", "old"), [("Look.still", "self.is_late"), ("Look", "no")])
def test_code_that_is_not_there_once_is_refused(within: str, old: str) -> None:
    with pytest.raises(StaleMutationError, match="times in Look"):
        Edit("look.py", within, old, "1").applied(TEXT)
