"""Cases that `make integration` leaves to `make integration-long`, and what each waits for.

A case stands here while nobody has seen it pass, whole and on a machine of its own, in a time that
every change can spend. It leaves the list on the day that it does.
"""

from __future__ import annotations

LONG_CASES = {
    "test_cluster_kills.py": "each kill takes minutes until leases and time-outs have ended",
    "test_cluster_page.py": "the page waits for timers of Hive and of ours, line by line",
    "test_page_beside_hive.py": "8 minutes on a busy machine",
    "test_spark_cluster.py": "each case has passed, but never all in one run",
    "test_storm_beside_hive.py": "shows something only if it lasts",
    "test_suites_on_stores.py": "longer than ten minutes for both stores",
}
"""File name → why."""
