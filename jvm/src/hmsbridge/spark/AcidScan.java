package hmsbridge.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.OptionalLong;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.SupportsReportStatistics;
import org.apache.spark.sql.connector.read.SupportsRuntimeV2Filtering;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;

/**
 * A scan of a table, planned when Spark first asks for its tasks and kept: the same frame run twice
 * reads the same snapshot. A runtime filter plans it anew, for the same statement.
 */
final class AcidScan
    implements Batch, SupportsReportStatistics, SupportsRuntimeV2Filtering {
  private final AcidTable table;
  private final StructType schema;
  private final Predicate[] predicates;
  private final String statement = Statements.current();
  private final SparkSession session = SparkSession.active();
  private final long splitBytes = SQLConf.get().filesMaxPartitionBytes();
  private final SessionZone zone = SessionZone.current();
  private final JsonNode filter;
  private final PlanLease lease;
  private JsonNode runtimeFilter;
  /** The last answer to read/plan but for files and splits; null: not planned yet. */
  private ReadSpec spec;
  private ScanSplit[] splits;

  AcidScan(AcidTable table, StructType schema, Predicate[] predicates) {
    this.table = table;
    this.schema = schema;
    this.predicates = predicates;
    filter = new FilterTree(zone).allOf(predicates);
    lease = Leases.of(context()).lease(table.client, table.idleSeconds);
  }

  private SparkContext context() {
    return session.sparkContext();
  }

  @Override
  public StructType readSchema() {
    return schema;
  }

  @Override
  public String description() {
    return "hms-bridge " + table.name() + " PushedFilters: " + Arrays.toString(predicates);
  }

  @Override
  public Batch toBatch() {
    return this;
  }

  /** Known without a plan, so that EXPLAIN asks for none. */
  @Override
  public Scan.ColumnarSupportMode columnarSupportMode() {
    return Scan.ColumnarSupportMode.SUPPORTED;
  }

  @Override
  public synchronized InputPartition[] planInputPartitions() {
    plan();
    return splits;
  }

  @Override
  public synchronized PartitionReaderFactory createReaderFactory() {
    plan();
    return new AcidReaderFactory(spec, lease, DriverSide.configuration(session));
  }

  private void plan() {
    if (spec != null) {
      return;
    }
    String execution = context().getLocalProperty("spark.sql.execution.id");
    JsonNode answer = table.client.ask("read/plan", question(execution));
    splits = new PlanReader(answer, partitionTypes(), zone).splits(answer.path("splits"));
    spec =
        new ReadSpec(
            schema,
            answer.path("row").asText(),
            Json.texts(answer.path("columns")),
            table.partitionColumns,
            filter == null ? null : filter.toString(),
            PlanReader.snapshot(table.definition, answer),
            zone.id(),
            table.isAcid,
            answer.path("format").asText(),
            new HashMap<>(Json.textMap(answer.path("text"))));
    lease.planned(answer.path("lease").asText(), execution);
  }

  private ObjectNode question(String execution) {
    ObjectNode question = table.question();
    question.put("statement", statement).put("execution", execution);
    DriverSide.introduce(question, context());
    question.set("filter", FilterTree.both(filter, runtimeFilter));
    question.put("parallelism", context().defaultParallelism());
    return question.put("split_bytes", splitBytes);
  }

  private DataType[] partitionTypes() {
    DataType[] types = new DataType[table.partitionColumns.length];
    for (int i = 0; i < types.length; i++) {
      types[i] = table.schema().apply(table.partitionColumns[i]).dataType();
    }
    return types;
  }

  /** Spark refuses to filter by a column that the scan does not give. */
  @Override
  public NamedReference[] filterAttributes() {
    List<String> given = Arrays.asList(schema.fieldNames());
    List<NamedReference> columns = new ArrayList<>();
    for (String column : table.partitionColumns) {
      if (given.contains(column)) {
        columns.add(Expressions.column(AcidTable.quoted(column)));
      }
    }
    return columns.toArray(new NamedReference[0]);
  }

  @Override
  public synchronized void filter(Predicate[] runtimePredicates) {
    JsonNode tree = new FilterTree(zone).allOf(runtimePredicates);
    if (tree != null && !tree.equals(runtimeFilter)) {
      runtimeFilter = tree;
      spec = null;
    }
  }

  /** Spark compares sizes to choose what to broadcast; of few columns only a part is read. */
  @Override
  public Statistics estimateStatistics() {
    return new Statistics() {
      @Override
      public OptionalLong sizeInBytes() {
        double part = (double) schema.defaultSize() / Math.max(1, table.schema().defaultSize());
        long bytes = (long) (table.sizeBytes * Math.min(1, part));
        return table.sizeBytes < 0 ? OptionalLong.empty() : OptionalLong.of(Math.max(1, bytes));
      }

      @Override
      public OptionalLong numRows() {
        return table.rowCount < 0 ? OptionalLong.empty() : OptionalLong.of(table.rowCount);
      }
    };
  }

  /** Equal scans read the same rows, so that Spark runs one of them and uses it twice. */
  @Override
  public boolean equals(Object other) {
    if (!(other instanceof AcidScan)) {
      return false;
    }
    AcidScan scan = (AcidScan) other;
    return statement.equals(scan.statement)
        && table.equals(scan.table)
        && schema.equals(scan.schema)
        && Arrays.equals(predicates, scan.predicates);
  }

  @Override
  public int hashCode() {
    return 31 * statement.hashCode() + schema.hashCode();
  }
}
