package hmsbridge.spark;

import java.io.Serializable;
import java.util.Collections;
import java.util.LinkedHashSet;
import java.util.Set;
import java.util.concurrent.TimeUnit;

/**
 * The lease of a scan: protects its files from the cleaner while they are read. A scan that is
 * planned anew may get a second name; both are held. The executors' copies know {@link #gone} only.
 */
final class PlanLease implements Serializable {
  private static final long serialVersionUID = 1;

  /** Spark writes a factory three times a job: ClosureCleaner tries it twice. One question does. */
  private static final long FRESH_NANOS = TimeUnit.MILLISECONDS.toNanos(500);

  /** Spark's events, by which a lease is idle or not, may be seconds late. */
  private static final long IDLE_OF_MANY_NANOS = TimeUnit.SECONDS.toNanos(10);

  private final transient Leases leases;
  private final transient long idleNanos;
  final transient PlanClient client;
  private transient Set<String> names = Collections.emptySet();
  private transient String execution;
  private transient boolean isAsked;
  private transient long askedNanos;
  private transient long usedMillis;
  private volatile String gone;

  PlanLease(Leases leases, PlanClient client, long idleNanos) {
    this.leases = leases;
    this.client = client;
    this.idleNanos = idleNanos;
  }

  /** What only explains has no execution; then the service holds nothing before the first use. */
  void planned(String name, String planningExecution) {
    synchronized (leases) {
      names = new LinkedHashSet<>(names);
      names.add(name);
      execution = planningExecution;
      if (planningExecution != null) {
        isAsked = true;
        askedNanos = System.nanoTime();
        usedMillis = System.currentTimeMillis();
        leases.hold(this);
      }
    }
  }

  /** On the driver, before each job: protects the snapshot, or makes {@link #gone} say why not. */
  void use() {
    if (leases == null) {
      return;
    }
    synchronized (leases) {
      if (!isAsked || System.nanoTime() - askedNanos >= FRESH_NANOS) {
        protect();
      }
      usedMillis = System.currentTimeMillis();
    }
  }

  private void protect() {
    try {
      Set<String> renewed = new LinkedHashSet<>();
      for (String name : names) {
        renewed.add(
            client.ask("read/use", Json.object().put("lease", name)).path("lease").asText(name));
      }
      names = renewed;
      gone = null;
      leases.hold(this);
    } catch (RuntimeException e) {
      lose(e.getMessage());
    }
    isAsked = true;
    askedNanos = System.nanoTime();
  }

  /** Until a later use protects it again. */
  void lose(String reason) {
    gone = reason;
    isAsked = false;
    leases.drop(this);
  }

  /** Null while the snapshot is protected, else the message of the error that ends a task. */
  String gone() {
    return gone;
  }

  Set<String> names() {
    return names;
  }

  /** The job that is being submitted counts: its start is before its use. */
  boolean isIdle(ActiveJobs jobs, boolean areMany) {
    long nanos = areMany ? Math.min(idleNanos, IDLE_OF_MANY_NANOS) : idleNanos;
    return System.nanoTime() - askedNanos >= nanos && !jobs.has(usedMillis, execution);
  }
}
