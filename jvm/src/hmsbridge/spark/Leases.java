package hmsbridge.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Set;
import java.util.WeakHashMap;
import java.util.concurrent.TimeUnit;
import java.util.function.Predicate;
import org.apache.spark.SparkContext;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The leases of a SparkContext: says every 20 seconds which are held and ends those that are idle.
 *
 * <p>Its lock is held for a question to the service at a time, as Spark's scheduler waits for it
 * ({@link PlanLease#use}): so no lease ends that was just used.
 */
final class Leases {
  private static final Logger LOG = LoggerFactory.getLogger(Leases.class);
  private static final long TICK_MS = 20_000;
  /** Of so many, a fifth of what the service takes, the idle ones end sooner. */
  private static final int MANY = 200;
  private static final long MANY_TICK_MS = 1_000;
  /** Of our own: where slow listeners share one, Spark drops events, also the end of a job. */
  private static final String QUEUE = "hms-bridge";
  private static final Map<SparkContext, Leases> OF_CONTEXTS = new WeakHashMap<>();

  private final Set<PlanLease> held = new LinkedHashSet<>();
  private final ActiveJobs jobs = new ActiveJobs(this::end);
  private long tickMs = TICK_MS;
  private boolean hasEnded;
  private boolean hasFailed;

  private Leases() {}

  static synchronized Leases of(SparkContext context) {
    Leases leases = OF_CONTEXTS.get(context);
    if (leases == null) {
      leases = new Leases();
      OF_CONTEXTS.put(context, leases);
      context.listenerBus().addToQueue(leases.jobs, QUEUE);
      Thread thread = new Thread(leases::run, "hms-bridge-leases");
      thread.setDaemon(true);
      thread.start();
    }
    return leases;
  }

  synchronized PlanLease lease(PlanClient client, int idleSeconds) {
    long idleMs = TimeUnit.SECONDS.toMillis(idleSeconds);
    if (idleMs < tickMs) {
      tickMs = Math.max(1, idleMs);
      notifyAll();
    }
    return new PlanLease(this, client, TimeUnit.SECONDS.toNanos(idleSeconds));
  }

  synchronized void hold(PlanLease lease) {
    if (held.add(lease) && held.size() == MANY) {
      notifyAll();
    }
  }

  synchronized void drop(PlanLease lease) {
    held.remove(lease);
  }

  private void run() {
    try {
      while (sleep()) {
        for (PlanClient client : clients()) {
          boolean areMany = areMany();
          endOf(client, lease -> lease.isIdle(jobs, areMany));
          keep(client);
        }
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private synchronized boolean sleep() throws InterruptedException {
    wait(areMany() ? Math.min(tickMs, MANY_TICK_MS) : tickMs);
    return !hasEnded;
  }

  private synchronized boolean areMany() {
    return held.size() >= MANY;
  }

  private synchronized Set<PlanClient> clients() {
    Set<PlanClient> clients = new HashSet<>();
    held.forEach(lease -> clients.add(lease.client));
    return clients;
  }

  /** A name that another scan of the statement still needs does not end. */
  private synchronized void endOf(PlanClient client, Predicate<PlanLease> isOver) {
    Set<String> ending = new LinkedHashSet<>();
    Set<PlanLease> over = new LinkedHashSet<>();
    held.stream().filter(lease -> lease.client == client && isOver.test(lease)).forEach(over::add);
    over.forEach(lease -> ending.addAll(lease.names()));
    held.removeAll(over);
    held.stream().filter(lease -> lease.client == client).forEach(l -> ending.removeAll(l.names()));
    if (!ending.isEmpty()) {
      ask(client, "read/end", ending);
    }
  }

  private synchronized void keep(PlanClient client) {
    Set<String> names = new LinkedHashSet<>();
    held.stream().filter(l -> l.client == client).forEach(l -> names.addAll(l.names()));
    if (names.isEmpty()) {
      return;
    }
    JsonNode answer = ask(client, "read/keep", names);
    for (String lost : Json.texts(answer.path("lost"))) {
      for (PlanLease lease : held.toArray(new PlanLease[0])) {
        if (lease.client == client && lease.names().contains(lost)) {
          lease.lose("the files of this frame's snapshot were protected no more: make it again");
        }
      }
    }
  }

  /**
   * What fails is no reader's fault: the next tick or use sees whether the service is there. At the
   * end of a Python program it has gone first, and has ended its leases itself: so what fails once
   * is not worth a word.
   */
  private JsonNode ask(PlanClient client, String verb, Set<String> names) {
    try {
      ObjectNode question = Json.object();
      question.set("leases", Json.tree(names));
      JsonNode answer = client.ask(verb, question);
      hasFailed = false;
      return answer;
    } catch (RuntimeException e) {
      if (hasFailed && !hasEnded) {
        LOG.warn("{} failed: {}", verb, e.getMessage());
      }
      hasFailed = true;
      return Json.object();
    }
  }

  /** At the end of the application. */
  private void end() {
    synchronized (this) {
      hasEnded = true;
      notifyAll();
    }
    for (PlanClient client : clients()) {
      endOf(client, lease -> true);
    }
  }
}
