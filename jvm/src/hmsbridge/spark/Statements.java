package hmsbridge.spark;

import java.util.Collections;
import java.util.Map;
import java.util.UUID;
import java.util.WeakHashMap;
import org.apache.spark.sql.catalyst.QueryPlanningTracker;
import scala.Option;

/**
 * Which scans are of one statement and so must see one snapshot. Spark's optimizer keeps a tracker
 * for the thread, one a QueryExecution (RuleExecutor.executeAndTrack), and builds the scans of
 * subqueries under it, too.
 */
final class Statements {
  /** A tracker has no equals of its own, so the keys are identities. */
  private static final Map<QueryPlanningTracker, String> STATEMENTS =
      Collections.synchronizedMap(new WeakHashMap<>());

  private Statements() {}

  /** The statement that this thread plans; a new one if it plans none. */
  static String current() {
    Option<QueryPlanningTracker> tracker = QueryPlanningTracker.get();
    return tracker.isEmpty()
        ? newStatement(null)
        : STATEMENTS.computeIfAbsent(tracker.get(), Statements::newStatement);
  }

  private static String newStatement(QueryPlanningTracker tracker) {
    return UUID.randomUUID().toString();
  }
}
