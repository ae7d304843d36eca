package hmsbridge.spark;

import java.time.Duration;
import java.time.Instant;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.time.zone.ZoneOffsetTransition;
import org.apache.spark.sql.catalyst.util.DateTimeUtils;
import org.apache.spark.sql.internal.SQLConf;

/** A session's time zone: Hive's wall clocks against Spark's instants, both in microseconds. */
final class SessionZone {
  /** No clock was ever moved by more than a day. */
  private static final Duration UNSURE = Duration.ofDays(2);

  private final ZoneId zone;

  SessionZone(String zone) {
    this.zone = DateTimeUtils.getZoneId(zone);
  }

  static SessionZone current() {
    return new SessionZone(SQLConf.get().sessionLocalTimeZone());
  }

  /** As java.time parses it: Spark allows more. */
  String id() {
    return zone.getId();
  }

  /** The instant at which a wall clock of the zone first shows this. */
  long toInstant(long wallMicros) {
    return DateTimeUtils.convertTz(wallMicros, zone, ZoneOffset.UTC);
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
    ZoneOffsetTransition next = zone.getRules().nextTransition(instant.minus(UNSURE));
    if (next != null && next.getInstant().isBefore(instant.plus(UNSURE))) {
      return null;
    }
    return toWallClock(micros);
  }
}
