package hmsbridge.spark;

import java.time.LocalDateTime;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.time.ZonedDateTime;
import java.time.zone.ZoneOffsetTransition;
import java.time.zone.ZoneRules;

/**
 * From what a clock on the wall of a time zone shows to the instant, in microseconds.
 *
 * <p>Of an hour that the clock shows twice it is the first; an hour that it leaves out counts from
 * the moment when it was put forward: the rules of java.time, by which Spark reads a timestamp's
 * text. Not for several threads.
 */
final class WallClock {
  private static final long MICROS = 1_000_000L;

  private final ZoneId zone;
  private final ZoneRules rules;
  /** Seconds of the wall clock, from the first and before the last, that have the one offset. */
  private long first;
  private long last;
  private long offsetMicros;

  WallClock(String zone) {
    this.zone = ZoneId.of(zone, ZoneId.SHORT_IDS);
    this.rules = this.zone.getRules();
  }

  long instant(long wallMicros) {
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
}
