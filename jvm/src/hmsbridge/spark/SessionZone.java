package hmsbridge.spark;

import java.time.Duration;
import java.time.Instant;
import java.time.LocalDateTime;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.time.ZonedDateTime;
import java.time.zone.ZoneOffsetTransition;
import java.time.zone.ZoneRules;
import org.apache.spark.sql.catalyst.util.DateTimeUtils;
import org.apache.spark.sql.internal.SQLConf;

/**
 * A session's time zone: Hive's wall clocks against Spark's instants, both in microseconds. Not for
 * several threads.
 */
final class SessionZone {
  /** No clock was ever moved by more than a day. */
  private static final Duration UNSURE = Duration.ofDays(2);

  private static final long MICROS = 1_000_000L;

  private final ZoneId zone;
  private final ZoneRules rules;
  /** Seconds of the wall clock, from the first and before the last, that have the one offset. */
  private long first;
  private long last;
  private long offsetMicros;

  SessionZone(String zone) {
    this.zone = DateTimeUtils.getZoneId(zone);
    rules = this.zone.getRules();
  }

  static SessionZone current() {
    return new SessionZone(SQLConf.get().sessionLocalTimeZone());
  }

  /** As java.time parses it: Spark allows more. */
  String id() {
    return zone.getId();
  }

  /**
   * The instant at which a wall clock of the zone first shows this. An hour that it leaves out
   * counts from the moment when it was put forward: so java.time has it, by which Spark reads a
   * timestamp's text.
   */
  long toInstant(long wallMicros) {
    long second = Math.floorDiv(wallMicros, MICROS);
    if (second < first || second >= last) {
      return lookUp(second) * MICROS + Math.floorMod(wallMicros, MICROS);
    }
    return wallMicros - offsetMicros;
  }

  private long lookUp(long second) {
    LocalDateTime shown = LocalDateTime.ofEpochSecond(second, 0, ZoneOffset.UTC);
    ZonedDateTime moment = shown.atZone(zone);
    ZoneOffsetTransition before = rules.previousTransition(moment.toInstant().plusSeconds(1));
    ZoneOffsetTransition after = rules.nextTransition(moment.toInstant());
    long from = before == null ? Long.MIN_VALUE : shownSeconds(before, true);
    long until = after == null ? Long.MAX_VALUE : shownSeconds(after, false);
    if (from <= second && second < until) {
      first = from;
      last = until;
      offsetMicros = moment.getOffset().getTotalSeconds() * MICROS;
    }
    return moment.toEpochSecond();
  }

  /** What the clock shows at a change: the later or the earlier of the two times. */
  private static long shownSeconds(ZoneOffsetTransition change, boolean isLater) {
    long before = change.getDateTimeBefore().toEpochSecond(ZoneOffset.UTC);
    long after = change.getDateTimeAfter().toEpochSecond(ZoneOffset.UTC);
    return isLater ? Math.max(before, after) : Math.min(before, after);
  }

  /** What a wall clock of the zone shows then. */
  long toWallClock(long micros) {
    return DateTimeUtils.convertTz(micros, ZoneOffset.UTC, zone);
  }

  /**
   * What a wall clock shows then; null if it was moved about then. If it goes back from 03:00 to
   * 02:00, the second 02:10 is later than a stored 02:30 (which means the first), but 02:10 is not.
   */
  Long fromInstant(long micros) {
    Instant instant = DateTimeUtils.microsToInstant(micros);
    ZoneOffsetTransition next = rules.nextTransition(instant.minus(UNSURE));
    if (next != null && next.getInstant().isBefore(instant.plus(UNSURE))) {
      return null;
    }
    return toWallClock(micros);
  }
}
