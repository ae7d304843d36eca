package hmsbridge.spark;

import java.io.IOException;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hive.ql.exec.vector.VectorizedRowBatch;
import org.apache.hadoop.hive.ql.io.sarg.SearchArgument;
import org.apache.orc.OrcProto;
import org.apache.orc.Reader;
import org.apache.orc.RecordReader;
import org.apache.orc.StripeInformation;
import org.apache.orc.TypeDescription;

/** Reads a file, or a range of its stripes, batch by batch into the task's vectors. */
final class FileReader implements BatchFile {
  /** Rows without columns that are given at once. */
  private static final int COUNTED_ROWS = 1 << 16;

  private final ScanFile file;
  private final String path;
  private final ReadSpec spec;
  private final Projection projection;
  private final Configuration configuration;
  private final Reader reader;
  /** Of the event columns; null for a file without them. */
  private List<OrcProto.ColumnStatistics> statistics;
  private RecordReader rows;
  private VectorizedRowBatch batch;
  private Survivors survivors;
  /** The first row's key, if the rows' keys are made by counting; null: they are read. */
  private RowKey first;
  /** Rows still to give of a file whose footer says all; -1: the rows must be read. */
  private long rowsCounted = -1;

  /**
   * @param deleteFiles whose events may hit rows of the file; empty: none
   * @param search null: all stripes and row groups are read
   */
  FileReader(
      ScanFile file,
      ReadSpec spec,
      Projection projection,
      PlannedFile[] deleteFiles,
      SearchArgument search,
      Configuration configuration)
      throws IOException {
    this.file = file;
    this.path = file.file.path;
    this.spec = spec;
    this.projection = projection;
    this.configuration = configuration;
    this.reader = OrcFiles.open(configuration, file.file, file.length);
    try {
      requireLayout();
      start(deleteFiles, search);
    } catch (IOException | RuntimeException | Error error) {
      closeQuietly(error);
      throw error;
    }
  }

  /** Whether the table's rows stand in the file without ACID columns. */
  private boolean isRaw() {
    return file.raw != null || !spec.acid;
  }

  private void requireLayout() throws IOException {
    boolean hasEvents = EventFile.isOne(reader.getSchema());
    if (hasEvents == isRaw()) {
      String what = hasEvents ? " has ACID columns, and should not" : " has no ACID columns";
      throw new IOException(path + what);
    }
    if (hasEvents) {
      statistics = reader.getOrcProtoFileStatistics();
      long[] operations = EventFile.bounds(statistics, EventFile.OPERATION);
      if (operations != null && (operations[0] != 0 || operations[1] != 0)) {
        throw new IOException(
            path
                + " has update or delete events among inserts: a table from before Hive 3, which"
                + " must be major compacted by Hive 2 first");
      }
    }
  }

  private void start(PlannedFile[] deleteFiles, SearchArgument search) throws IOException {
    DeleteIndex deletes = deletes(deleteFiles);
    boolean isFiltered = file.filtered && !isRaw();
    boolean needsKeys = projection.hasRowId || deletes != null;
    first = needsKeys ? firstKey() : null;
    if (deletes != null || isFiltered) {
      survivors = new Survivors(projection.keys, deletes, isFiltered ? spec.snapshot : null);
    }
    if (!projection.hasColumns && !needsKeys && !isFiltered) {
      rowsCounted = countRows();
      return;
    }
    batch = isRaw() ? projection.rawBatch() : projection.eventBatch();
    openRows(needsKeys && first == null, isFiltered, search);
  }

  /**
   * The first row's key if that of row n is the same but for a row id greater by n; else null.
   *
   * <p>So it is in raw files, and in what one write appended: there the statistics tell.
   */
  private RowKey firstKey() throws IOException {
    if (isRaw()) {
      long before = OrcFiles.countRows(configuration, spec.snapshot.table, file.raw.preceding);
      return new RowKey(file.raw.writeId, file.raw.bucket, before);
    }
    long[] writeIds = EventFile.bounds(statistics, EventFile.WRITE_ID);
    long[] buckets = EventFile.bounds(statistics, EventFile.BUCKET);
    long[] rowIds = EventFile.bounds(statistics, EventFile.ROW_ID);
    boolean isCounted =
        writeIds != null
            && buckets != null
            && rowIds != null
            && writeIds[0] == writeIds[1]
            && buckets[0] == buckets[1]
            && rowIds[1] - rowIds[0] == reader.getNumberOfRows() - 1;
    return isCounted ? new RowKey(writeIds[0], buckets[0], rowIds[0]) : null;
  }

  /** Null if none of the events can hit a row of the file: then its keys need not be read. */
  private DeleteIndex deletes(PlannedFile[] files) throws IOException {
    if (files.length == 0 || !spec.acid) {
      return null;
    }
    DeleteIndex deletes = DeleteIndexes.get(configuration, files, spec.snapshot);
    boolean mayHit;
    if (isRaw()) {
      long[] writeIds = {file.raw.writeId, file.raw.writeId};
      long[] buckets = {file.raw.bucket, file.raw.bucket};
      mayHit = deletes.mayHit(writeIds, buckets, null);
    } else {
      mayHit =
          deletes.mayHit(
              EventFile.bounds(statistics, EventFile.WRITE_ID),
              EventFile.bounds(statistics, EventFile.BUCKET),
              EventFile.bounds(statistics, EventFile.ROW_ID));
    }
    return mayHit ? deletes : null;
  }

  private long countRows() {
    long count = 0;
    for (StripeInformation stripe : reader.getStripes()) {
      if (file.hasStripe(stripe.getOffset())) {
        count += stripe.getNumberOfRows();
      }
    }
    return count;
  }

  /** Hive finds columns by their place: in an event file those below {@code row}. */
  private void openRows(boolean needsKeys, boolean needsCurrent, SearchArgument search)
      throws IOException {
    TypeDescription schema = isRaw() ? projection.row : projection.event;
    boolean[] included =
        isRaw()
            ? projection.includedOfRow()
            : projection.includedOfEvent(needsKeys || needsCurrent, needsCurrent);
    included[0] = true;
    long end = file.end < 0 ? Long.MAX_VALUE : file.end;
    Reader.Options options =
        reader
            .options()
            .schema(schema)
            .include(included)
            .forcePositionalEvolution(true)
            .positionalEvolutionLevel(isRaw() ? 1 : 2)
            .isSchemaEvolutionCaseAware(false)
            .skipCorruptRecords(false)
            .range(file.start, end - file.start);
    if (search != null && SearchArguments.fits(fileRow(), projection.row)) {
      options.searchArgument(search, spec.columns).allowSARGToFilter(false);
    }
    try {
      rows = reader.rows(options);
    } catch (IOException | RuntimeException error) {
      throw OrcFiles.failure(path, error);
    }
  }

  /** The type of the table's columns as the file has them. */
  private TypeDescription fileRow() {
    TypeDescription schema = reader.getSchema();
    return isRaw() ? schema : schema.getChildren().get(EventFile.ROW);
  }

  /** Until some rows survive. */
  @Override
  public int next() throws IOException {
    if (rowsCounted >= 0) {
      int count = (int) Math.min(rowsCounted, COUNTED_ROWS);
      rowsCounted -= count;
      return count;
    }
    while (nextBatch()) {
      int count = survivors == null ? batch.size : survivors.find(batch.size);
      if (count > 0) {
        show(count < batch.size ? survivors.places() : null);
        return count;
      }
    }
    return 0;
  }

  private boolean nextBatch() throws IOException {
    // ORC has moved on already: this is the first row that the search does not leave out.
    long row = rows.getRowNumber();
    try {
      if (!rows.nextBatch(batch)) {
        return false;
      }
    } catch (IOException | RuntimeException error) {
      throw OrcFiles.failure(path, reader, row, error);
    }
    if (first != null) {
      projection.keys.number(first, row, batch.size);
    }
    return true;
  }

  private void show(int[] places) {
    for (OrcVector vector : projection.vectors) {
      if (vector != null) {
        vector.begin(places, false);
      }
    }
  }

  @Override
  public OrcVector vector(int at) {
    return projection.vectors[at];
  }

  @Override
  public void close() throws IOException {
    try {
      if (rows != null) {
        rows.close();
      }
    } finally {
      reader.close();
    }
  }

  private void closeQuietly(Throwable error) {
    try {
      close();
    } catch (IOException | RuntimeException second) {
      error.addSuppressed(second);
    }
  }
}
