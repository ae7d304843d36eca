"""The list of mutations fits the code; `make mutants` tries them."""

from __future__ import annotations

from tests.simulation.mutants import ROOT, mutated
from tests.simulation.mutation import Mutation
from tests.simulation.mutations import MUTATIONS
from tests.support.rules import holds_for


@holds_for(MUTATIONS, name=lambda mutation: mutation.name)
def test_each_breaks_a_line_that_is_there_once(mutation: Mutation):
    for edit in mutation.edits:
        text = (ROOT / edit.file).read_text(encoding="utf-8")
        compile(mutated(edit, text), edit.file, "exec")
    assert mutation.test or mutation.is_simulated
    if mutation.test:
        file, _, test = mutation.test.partition("::")
        test = test.rpartition("::")[2]
        place = ROOT / file
        assert place.exists()
        assert not test or f"def {test}(" in place.read_text(encoding="utf-8")
