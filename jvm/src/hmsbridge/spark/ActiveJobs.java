package hmsbridge.spark;

import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerApplicationEnd;
import org.apache.spark.scheduler.SparkListenerEvent;
import org.apache.spark.scheduler.SparkListenerJobEnd;
import org.apache.spark.scheduler.SparkListenerJobStart;
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd;
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart;

/** Which jobs and SQL executions run. Spark's events come late, but in order. */
final class ActiveJobs extends SparkListener {
  private final Map<Integer, Long> jobStarts = new ConcurrentHashMap<>();
  private final Set<String> executions = ConcurrentHashMap.newKeySet();
  private final Runnable atEnd;

  ActiveJobs(Runnable atEnd) {
    this.atEnd = atEnd;
  }

  /** Whether a job runs that was submitted by then, or the execution does (null: of none). */
  boolean has(long submittedMillis, String execution) {
    return execution != null && executions.contains(execution)
        || jobStarts.values().stream().anyMatch(start -> start <= submittedMillis);
  }

  @Override
  public void onJobStart(SparkListenerJobStart event) {
    jobStarts.put(event.jobId(), event.time());
  }

  @Override
  public void onJobEnd(SparkListenerJobEnd event) {
    jobStarts.remove(event.jobId());
  }

  @Override
  public void onOtherEvent(SparkListenerEvent event) {
    if (event instanceof SparkListenerSQLExecutionStart) {
      executions.add(Long.toString(((SparkListenerSQLExecutionStart) event).executionId()));
    } else if (event instanceof SparkListenerSQLExecutionEnd) {
      executions.remove(Long.toString(((SparkListenerSQLExecutionEnd) event).executionId()));
    }
  }

  @Override
  public void onApplicationEnd(SparkListenerApplicationEnd event) {
    atEnd.run();
  }
}
