package hmsbridge.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Collections;
import java.util.EnumSet;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.MetadataColumn;
import org.apache.spark.sql.connector.catalog.SupportsMetadataColumns;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * A full ACID or insert-only table, as it was loaded. Two of the same name and definition are
 * equal, so that a statement finds what CACHE TABLE keeps.
 */
final class AcidTable implements SupportsRead, SupportsWrite, SupportsMetadataColumns {
  private static final StructType ROW_ID_TYPE =
      new StructType()
          .add("writeid", DataTypes.LongType, false)
          .add("bucketid", DataTypes.IntegerType, false)
          .add("rowid", DataTypes.LongType, false);

  private final String name;
  private final Map<String, String> properties;
  private final StructType schema;
  final Identifier identifier;
  final String definition;
  final String[] partitionColumns;
  /** False for insert-only tables. */
  final boolean isAcid;
  /** Of the files and of all rows; -1: not known. */
  final long sizeBytes;
  final long rowCount;
  /** Null if it is not CLUSTERED BY. */
  final Buckets buckets;
  final PlanClient client;
  final int idleSeconds;

  /** Of an answer to table/load. */
  AcidTable(
      String catalog, Identifier identifier, JsonNode answer, PlanClient client, int idleSeconds) {
    this.name = catalog + "." + identifier;
    this.identifier = identifier;
    this.client = client;
    this.idleSeconds = idleSeconds;
    isAcid = answer.path("kind").asText().equals("acid");
    definition = answer.path("definition").asText();
    schema = (StructType) DataType.fromJson(answer.path("schema").toString());
    partitionColumns = Json.texts(answer.path("partition_columns"));
    buckets = Buckets.of(answer, schema);
    properties = Collections.unmodifiableMap(Json.textMap(answer.path("properties")));
    sizeBytes = answer.path("size_bytes").asLong(-1);
    rowCount = answer.path("row_count").asLong(-1);
  }

  /** A name as Spark's parser of names takes it, whatever is in it. */
  static String quoted(String column) {
    return "`" + column.replace("`", "``") + "`";
  }

  @Override
  public String name() {
    return name;
  }

  @Override
  @SuppressWarnings("deprecation")
  public StructType schema() {
    return schema;
  }

  @Override
  public Map<String, String> properties() {
    return properties;
  }

  @Override
  public Transform[] partitioning() {
    Transform[] transforms = new Transform[partitionColumns.length];
    for (int i = 0; i < transforms.length; i++) {
      transforms[i] = Expressions.identity(quoted(partitionColumns[i]));
    }
    return transforms;
  }

  @Override
  public Set<TableCapability> capabilities() {
    return isAcid
        ? EnumSet.of(TableCapability.BATCH_READ, TableCapability.BATCH_WRITE)
        : EnumSet.of(TableCapability.BATCH_READ);
  }

  @Override
  public MetadataColumn[] metadataColumns() {
    return isAcid ? new MetadataColumn[] {new RowIdColumn()} : new MetadataColumn[0];
  }

  @Override
  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    return new AcidScanBuilder(this);
  }

  @Override
  public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    return new WriteBuilder() {
      @Override
      public Write build() {
        return new AcidWrite(AcidTable.this, info.schema());
      }
    };
  }

  /** What each question about it begins with. */
  ObjectNode question() {
    ObjectNode question = Json.object().put("namespace", identifier.namespace()[0]);
    return question.put("name", identifier.name()).put("definition", definition);
  }

  @Override
  public boolean equals(Object other) {
    if (!(other instanceof AcidTable)) {
      return false;
    }
    AcidTable table = (AcidTable) other;
    return name.equals(table.name)
        && definition.equals(table.definition)
        && schema.equals(table.schema);
  }

  @Override
  public int hashCode() {
    return 31 * name.hashCode() + definition.hashCode();
  }

  @Override
  public String toString() {
    return name;
  }

  /** Hive's ROW__ID under the names that Hive gives its fields in lower case. */
  private static final class RowIdColumn implements MetadataColumn {
    @Override
    public String name() {
      return ReadSpec.ROW_ID;
    }

    @Override
    public DataType dataType() {
      return ROW_ID_TYPE;
    }

    @Override
    public boolean isNullable() {
      return false;
    }
  }
}
