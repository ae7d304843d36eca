package hmsbridge.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.types.DataType;

/** Reads the files, partitions and splits of an answer to read/plan. */
final class PlanReader {
  private final JsonNode files;
  private final JsonNode deletes;
  private final List<Object[]> partitions = new ArrayList<>();

  PlanReader(JsonNode answer, DataType[] partitionTypes, SessionZone zone) {
    files = answer.path("files");
    deletes = answer.path("deletes");
    for (JsonNode values : answer.path("partitions")) {
      Object[] partition = new Object[partitionTypes.length];
      for (int i = 0; i < partition.length; i++) {
        partition[i] = PlanValues.fromJson(values.get(i), partitionTypes[i], zone);
      }
      partitions.add(partition);
    }
  }

  static Snapshot snapshot(String table, JsonNode answer) {
    JsonNode ids = answer.path("invalid");
    long[] invalid = new long[ids.size()];
    for (int i = 0; i < invalid.length; i++) {
      invalid[i] = ids.get(i).asLong();
    }
    return new Snapshot(table, answer.path("high_watermark").asLong(), invalid);
  }

  ScanSplit[] splits(JsonNode ranges) {
    ScanSplit[] splits = new ScanSplit[ranges.size()];
    for (int i = 0; i < splits.length; i++) {
      splits[i] = split(ranges.get(i).get(0).asInt(), ranges.get(i).get(1).asInt());
    }
    return splits;
  }

  /** A task gets the partitions and delete lists of its own files, numbered anew. */
  private ScanSplit split(int first, int end) {
    Map<Integer, Integer> partitionPlaces = new LinkedHashMap<>();
    Map<Integer, Integer> deletePlaces = new LinkedHashMap<>();
    ScanFile[] range = new ScanFile[end - first];
    for (int i = 0; i < range.length; i++) {
      JsonNode file = files.get(first + i);
      int partition = place(partitionPlaces, file.get(4).asInt());
      int deleteList = place(deletePlaces, file.get(5).asInt());
      range[i] = file(file, partition, deleteList);
    }
    List<Object[]> values = new ArrayList<>();
    partitionPlaces.keySet().forEach(place -> values.add(partitions.get(place)));
    List<PlannedFile[]> lists = new ArrayList<>();
    deletePlaces.keySet().forEach(place -> lists.add(deleteFiles(deletes.get(place))));
    return new ScanSplit(
        range, values.toArray(new Object[0][]), lists.toArray(new PlannedFile[0][]));
  }

  private static int place(Map<Integer, Integer> places, int old) {
    return old < 0 ? -1 : places.computeIfAbsent(old, any -> places.size());
  }

  private static PlannedFile[] deleteFiles(JsonNode list) {
    PlannedFile[] files = new PlannedFile[list.size()];
    for (int i = 0; i < files.length; i++) {
      JsonNode file = list.get(i);
      files[i] =
          new PlannedFile(file.get(0).asText(), file.get(1).asLong(), file.get(2).asLong());
    }
    return files;
  }

  private static ScanFile file(JsonNode file, int partition, int deleteList) {
    return new ScanFile(
        new PlannedFile(file.get(0).asText(), file.get(8).asLong(), file.get(9).asLong()),
        file.get(1).asLong(),
        file.get(2).asLong(),
        file.get(3).asLong(),
        partition,
        deleteList,
        file.get(6).asBoolean(),
        raw(file.get(7)));
  }

  private static RawRows raw(JsonNode raw) {
    return raw.isNull()
        ? null
        : new RawRows(raw.get(0).asLong(), raw.get(1).asInt(), Json.texts(raw.get(2)));
  }
}
