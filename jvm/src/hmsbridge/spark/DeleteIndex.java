package hmsbridge.spark;

import java.io.IOException;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hive.ql.exec.vector.LongColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.VectorizedRowBatch;
import org.apache.orc.Reader;
import org.apache.orc.RecordReader;
import org.apache.orc.TypeDescription;

/**
 * Which rows the events of some delete files name, as far as the snapshot sees the events.
 *
 * <p>For each write id and bucket the row ids, ascending: eight bytes a row.
 */
final class DeleteIndex {
  private static final long GROUP_BYTES = 200;

  private final TreeMap<Long, Map<Integer, long[]>> rows = new TreeMap<>();
  private long sizeBytes;

  private DeleteIndex() {}

  /** Reads each file once, one after the other. */
  static DeleteIndex load(Configuration configuration, PlannedFile[] files, Snapshot snapshot)
      throws IOException {
    Loader loader = new Loader(snapshot);
    for (PlannedFile file : files) {
      loader.read(configuration, file);
    }
    return loader.finish();
  }

  long sizeBytes() {
    return sizeBytes;
  }

  /** Row ids of the deleted rows of one write id and bucket, ascending; null: none. */
  long[] rows(long writeId, int bucket) {
    Map<Integer, long[]> buckets = rows.get(writeId);
    return buckets == null ? null : buckets.get(bucket);
  }

  /** Whether a row may be deleted whose ids are all within these bounds (null: unknown). */
  boolean mayHit(long[] writeIds, long[] buckets, long[] rowIds) {
    Map<Long, Map<Integer, long[]>> within =
        writeIds == null ? rows : rows.subMap(writeIds[0], true, writeIds[1], true);
    for (Map<Integer, long[]> group : within.values()) {
      for (Map.Entry<Integer, long[]> deleted : group.entrySet()) {
        if (isWithin(deleted.getKey(), buckets) && overlaps(deleted.getValue(), rowIds)) {
          return true;
        }
      }
    }
    return false;
  }

  private static boolean isWithin(int bucket, long[] bounds) {
    return bounds == null || bounds[0] <= bucket && bucket <= bounds[1];
  }

  private static boolean overlaps(long[] sorted, long[] bounds) {
    if (bounds == null) {
      return true;
    }
    int place = Arrays.binarySearch(sorted, bounds[0]);
    return place >= 0 || -place - 1 < sorted.length && sorted[-place - 1] <= bounds[1];
  }

  /** Row ids of one write id and bucket, while they are gathered. */
  private static final class Group {
    private long[] rows = new long[16];
    private int count;

    void add(long row) {
      if (count == rows.length) {
        rows = Arrays.copyOf(rows, count * 2);
      }
      rows[count++] = row;
    }

    long[] sorted() {
      long[] all = Arrays.copyOf(rows, count);
      Arrays.sort(all);
      return all;
    }
  }

  private static final class Loader {
    private final Snapshot snapshot;
    private final Map<Long, Map<Integer, Group>> groups = new HashMap<>();
    private Group group;
    private long groupWriteId;
    private int groupBucket;

    Loader(Snapshot snapshot) {
      this.snapshot = snapshot;
    }

    void read(Configuration configuration, PlannedFile file) throws IOException {
      try (Reader reader = OrcFiles.open(configuration, file, -1)) {
        TypeDescription schema = reader.getSchema();
        if (!EventFile.isOne(schema)) {
          throw new IOException(file.path + " holds no delete events: it has no ACID columns");
        }
        boolean[] include = new boolean[schema.getMaximumId() + 1];
        for (int place = EventFile.WRITE_ID; place <= EventFile.CURRENT_WRITE_ID; place++) {
          include[EventFile.id(place)] = true;
        }
        include[0] = true;
        VectorizedRowBatch batch = events();
        try (RecordReader events = reader.rows(reader.options().include(include))) {
          while (events.nextBatch(batch)) {
            add(batch);
          }
        } catch (IOException | RuntimeException error) {
          throw OrcFiles.failure(file.path, error);
        }
      }
    }

    private static VectorizedRowBatch events() {
      VectorizedRowBatch batch = new VectorizedRowBatch(EventFile.COLUMNS, Keys.BATCH_ROWS);
      for (int place = EventFile.WRITE_ID; place <= EventFile.CURRENT_WRITE_ID; place++) {
        batch.cols[place] = new LongColumnVector(Keys.BATCH_ROWS);
      }
      return batch;
    }

    private void add(VectorizedRowBatch batch) {
      LongColumnVector writeIds = (LongColumnVector) batch.cols[EventFile.WRITE_ID];
      LongColumnVector buckets = (LongColumnVector) batch.cols[EventFile.BUCKET];
      LongColumnVector rowIds = (LongColumnVector) batch.cols[EventFile.ROW_ID];
      LongColumnVector current = (LongColumnVector) batch.cols[EventFile.CURRENT_WRITE_ID];
      long tested = 0;
      boolean isSeen = snapshot.sees(tested);
      for (int row = 0; row < batch.size; row++) {
        long by = Keys.value(current, row);
        if (by != tested) {
          tested = by;
          isSeen = snapshot.sees(by);
        }
        if (isSeen) {
          group(Keys.value(writeIds, row), (int) Keys.value(buckets, row))
              .add(Keys.value(rowIds, row));
        }
      }
    }

    private Group group(long writeId, int bucket) {
      if (group == null || groupWriteId != writeId || groupBucket != bucket) {
        group =
            groups
                .computeIfAbsent(writeId, id -> new HashMap<>())
                .computeIfAbsent(bucket, id -> new Group());
        groupWriteId = writeId;
        groupBucket = bucket;
      }
      return group;
    }

    DeleteIndex finish() {
      DeleteIndex index = new DeleteIndex();
      for (Map.Entry<Long, Map<Integer, Group>> write : groups.entrySet()) {
        Map<Integer, long[]> buckets = new HashMap<>();
        for (Map.Entry<Integer, Group> gathered : write.getValue().entrySet()) {
          long[] sorted = gathered.getValue().sorted();
          gathered.setValue(null);
          buckets.put(gathered.getKey(), sorted);
          index.sizeBytes += GROUP_BYTES + Long.BYTES * (long) sorted.length;
        }
        index.rows.put(write.getKey(), buckets);
      }
      return index;
    }
  }
}
