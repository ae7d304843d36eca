package hmsbridge.spark;

import java.util.Arrays;
import org.apache.hadoop.hive.ql.exec.vector.LongColumnVector;

/** Finds the rows of a batch that the snapshot sees and that no event deletes. */
final class Survivors {
  private static final long[] NONE = {};

  private final Keys keys;
  private final DeleteIndex deletes;
  private final Snapshot filter;
  private final int[] places = new int[Keys.BATCH_ROWS];
  private int count;

  /**
   * @param deletes null: no row is deleted
   * @param filter null: the writes of all rows are seen
   */
  Survivors(Keys keys, DeleteIndex deletes, Snapshot filter) {
    this.keys = keys;
    this.deletes = deletes;
    this.filter = filter;
  }

  /** How many of the batch's rows survive. */
  int find(int size) {
    count = 0;
    int from = 0;
    while (from < size) {
      int until = runEnd(from, size);
      long[] dead = dead(from);
      if (filter != null) {
        addSeen(from, until, dead);
      } else if (dead.length == 0) {
        addAll(from, until);
      } else {
        addLiving(from, until, dead);
      }
      from = until;
    }
    return count;
  }

  /** Places of the survivors in the batch. */
  int[] places() {
    return places;
  }

  /** Where the rows of the same write id and bucket end. */
  private int runEnd(int from, int size) {
    LongColumnVector writeIds = keys.writeIds;
    LongColumnVector buckets = keys.buckets;
    if (writeIds.isRepeating && buckets.isRepeating) {
      return size;
    }
    long writeId = Keys.value(writeIds, from);
    long bucket = Keys.value(buckets, from);
    int until = from + 1;
    while (until < size
        && Keys.value(writeIds, until) == writeId
        && Keys.value(buckets, until) == bucket) {
      until++;
    }
    return until;
  }

  private long[] dead(int row) {
    if (deletes == null) {
      return NONE;
    }
    long[] dead =
        deletes.rows(Keys.value(keys.writeIds, row), (int) Keys.value(keys.buckets, row));
    return dead == null ? NONE : dead;
  }

  private void addAll(int from, int until) {
    for (int row = from; row < until; row++) {
      places[count++] = row;
    }
  }

  /** Walks along both: row ids ascend within a write id and bucket, or else are searched for. */
  private void addLiving(int from, int until, long[] dead) {
    long previous = Keys.value(keys.rowIds, from);
    int next = firstFrom(dead, previous);
    for (int row = from; row < until; row++) {
      long id = Keys.value(keys.rowIds, row);
      if (id < previous) {
        next = firstFrom(dead, id);
      }
      previous = id;
      while (next < dead.length && dead[next] < id) {
        next++;
      }
      if (next == dead.length || dead[next] != id) {
        places[count++] = row;
      }
    }
  }

  private void addSeen(int from, int until, long[] dead) {
    long tested = Keys.value(keys.currentWriteIds, from);
    boolean isSeen = filter.sees(tested);
    for (int row = from; row < until; row++) {
      long by = Keys.value(keys.currentWriteIds, row);
      if (by != tested) {
        tested = by;
        isSeen = filter.sees(by);
      }
      if (isSeen && Arrays.binarySearch(dead, Keys.value(keys.rowIds, row)) < 0) {
        places[count++] = row;
      }
    }
  }

  private static int firstFrom(long[] sorted, long value) {
    int place = Arrays.binarySearch(sorted, value);
    if (place < 0) {
      return -place - 1;
    }
    while (place > 0 && sorted[place - 1] == value) {
      place--;
    }
    return place;
  }
}
