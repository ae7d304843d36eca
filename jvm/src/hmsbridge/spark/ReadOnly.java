package hmsbridge.spark;

/** Refusals of what only whoever writes ACID tables can do. */
final class ReadOnly {
  private ReadOnly() {}

  static UnsupportedOperationException refuse(String statement, String object) {
    return new UnsupportedOperationException(
        statement + " of " + object + " is refused: Spark reads ACID tables, and appends to them. Use"
            + " Hive, Trino or `hms-bridge sql`");
  }

  static UnsupportedOperationException refuseTimeTravel(String table) {
    return new UnsupportedOperationException(
        "ACID tables keep no versions to go back to: read " + table + " as it is now");
  }
}
