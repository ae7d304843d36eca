package hmsbridge.spark;

import java.io.IOException;
import java.lang.ref.SoftReference;
import java.util.Arrays;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;

/**
 * The delete indexes of an executor: each is loaded once, whoever else wants it waits.
 *
 * <p>Those used last are kept, up to a quarter of the heap, and for as long as memory is left.
 */
final class DeleteIndexes {
  private static final long BYTES_MAX = Runtime.getRuntime().maxMemory() / 4;
  private static final Map<Key, Slot> SLOTS = new LinkedHashMap<>(16, 0.75f, true);

  private DeleteIndexes() {}

  static DeleteIndex get(Configuration configuration, PlannedFile[] files, Snapshot snapshot)
      throws IOException {
    Key key = new Key(files, snapshot);
    Slot slot;
    synchronized (SLOTS) {
      slot = SLOTS.computeIfAbsent(key, missing -> new Slot());
    }
    DeleteIndex index;
    synchronized (slot) {
      index = slot.index.get();
      if (index != null) {
        return index;
      }
      index = DeleteIndex.load(configuration, files, snapshot);
      slot.index = new SoftReference<>(index);
    }
    synchronized (SLOTS) {
      slot.sizeBytes = index.sizeBytes() + key.sizeBytes();
      shrink();
    }
    return index;
  }

  /** Forgets what the collector took, then what was not asked for the longest. */
  private static void shrink() {
    long bytes = 0;
    for (Iterator<Slot> slots = SLOTS.values().iterator(); slots.hasNext(); ) {
      Slot slot = slots.next();
      if (slot.sizeBytes > 0 && slot.index.get() == null) {
        slots.remove();
      } else {
        bytes += slot.sizeBytes;
      }
    }
    Iterator<Slot> oldest = SLOTS.values().iterator();
    while (bytes > BYTES_MAX && oldest.hasNext()) {
      bytes -= oldest.next().sizeBytes;
      oldest.remove();
    }
  }

  private static final class Slot {
    /** Loaded by one reader at a time, which holds the slot. */
    private volatile SoftReference<DeleteIndex> index = new SoftReference<>(null);
    /** 0 while it is loaded. */
    private long sizeBytes;
  }

  private static final class Key {
    private static final long OBJECT_BYTES = 100;

    private final PlannedFile[] files;
    private final Snapshot snapshot;

    Key(PlannedFile[] files, Snapshot snapshot) {
      this.files = files;
      this.snapshot = snapshot;
    }

    long sizeBytes() {
      long bytes = OBJECT_BYTES + Long.BYTES * (long) snapshot.invalid.length;
      for (PlannedFile file : files) {
        bytes += OBJECT_BYTES + 2L * file.path.length();
      }
      return bytes;
    }

    @Override
    public boolean equals(Object other) {
      return other instanceof Key
          && Arrays.equals(((Key) other).files, files)
          && ((Key) other).snapshot.equals(snapshot);
    }

    @Override
    public int hashCode() {
      return 31 * Arrays.hashCode(files) + snapshot.hashCode();
    }
  }
}
