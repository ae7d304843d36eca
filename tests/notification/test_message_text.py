"""Messages are zipped in less memory where they are short; nobody who reads them can tell."""

from __future__ import annotations

import base64
import json
import random
import zlib

from hypothesis import given
from hypothesis import strategies as st

from hms_bridge.notification.message_text import MessageFormat, write_text


def _twice(seed: int) -> str:
    """Something that returns, near or far away: a small window does not see it any more."""
    dice = random.Random(seed)
    return "".join(dice.choices("abcdefgh01é", k=dice.randrange(9000) >> dice.randrange(12))) * 2


@given(text=st.text(max_size=100) | st.integers().map(_twice), number=st.integers(0, 10**12))
def test_a_message_is_zipped_as_with_all_the_memory(text: str, number: int) -> None:
    message = {"txnid": number, "timestamp": 1795855734, "server": text}
    written = base64.b64decode(write_text(message, MessageFormat.ZIPPED_JSON))
    assert json.loads(zlib.decompress(written, zlib.MAX_WBITS + 16)) == message
    content = write_text(message, MessageFormat.JSON).encode()
    zipper = zlib.compressobj(wbits=zlib.MAX_WBITS + 16)
    assert len(written) == len(zipper.compress(content) + zipper.flush())
