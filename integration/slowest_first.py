"""Files of cases that take minutes, the slowest first: two processes share the files, and one that
began with the slowest at the end would work alone."""

from __future__ import annotations

SLOWEST_FIRST = (
    "test_cluster_story.py",
    "test_suites_on_stores.py",
    "test_cluster_kills.py",
    "test_ours_as_metastore.py",
    "test_ours_in_comparison.py",
    "test_cluster_retention.py",
    "test_spark_cluster.py",
    "test_cluster_page.py",
    "test_storm_beside_hive.py",
    "test_page_beside_hive.py",
    "test_hdfs.py",
)
