package hmsbridge.spark;

import java.io.Closeable;
import java.io.IOException;
import org.apache.spark.sql.vectorized.ColumnVector;

/** A file that is read in batches. */
interface BatchFile extends Closeable {
  /** Reads some rows. Their number; 0 at the end. */
  int next() throws IOException;

  /** The column at a place of the scan's schema; null: no column of the file. */
  ColumnVector vector(int at);
}
