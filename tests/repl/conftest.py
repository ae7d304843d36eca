from __future__ import annotations

import pytest

from tests.support.golden_repl import GoldenRepl, golden_cycles, open_cycle


@pytest.fixture(scope="session", params=golden_cycles(), ids=["own", "shared"][: len(golden_cycles())])
def cycle(request, tmp_path_factory) -> GoldenRepl:
    return open_cycle(request.param, tmp_path_factory.mktemp("cycle"))
