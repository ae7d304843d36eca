import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.stream.LongStream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hive.common.*;
import org.apache.hadoop.hive.metastore.Warehouse;
import org.apache.hadoop.hive.metastore.api.FieldSchema;
import org.apache.hadoop.hive.metastore.utils.FileUtils;
import org.apache.hadoop.hive.ql.exec.Utilities;
import org.apache.hadoop.hive.ql.io.*;

/**
 * Hive's own writers and readers of texts. Requests and answers are JSON, one a line: what Hive
 * writes of numbers, what it reads out of a text, or the class of what it throws.
 */
public class TextsOfHive {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Configuration CONF = new Configuration(false);

    public static String answer(String requests) throws Exception {
        StringBuilder answers = new StringBuilder();
        for (String line : requests.split("\n")) {
            JsonNode request = JSON.readTree(line);
            ObjectNode answer = JSON.createObjectNode();
            String ask = request.get("ask").asText();
            try {
                if (ask.startsWith("write ")) {
                    answer.put("text", written(ask, request));
                } else {
                    read(ask, request.get("text").asText(), request, answer);
                }
            } catch (Exception | OutOfMemoryError | AssertionError error) {
                answer = JSON.createObjectNode().put("refused", error.getClass().getSimpleName());
            }
            answers.append(JSON.writeValueAsString(answer)).append('\n');
        }
        return answers.toString();
    }

    private static String written(String ask, JsonNode of) throws Exception {
        switch (ask) {
            case "write txns":
                return new ValidReadTxnList(as(long[].class, of.get("ids")), aborted(of),
                    of.get("high").asLong(), of.get("min").asLong()).writeToString();
            case "write ids": return writeIds(of).writeToString();
            case "write tables":
                ValidTxnWriteIdList lists = new ValidTxnWriteIdList(of.get("txn").asLong());
                of.get("lists").forEach(list -> lists.addTableValidWriteIdList(writeIds(list)));
                return lists.toString();
            case "write partition":
                List<FieldSchema> columns = new ArrayList<>();
                of.get("keys").forEach(key -> columns.add(new FieldSchema(key.asText(), "string", "")));
                return Warehouse.makePartName(columns, List.of(as(String[].class, of.get("values"))));
            default: return file(of);
        }
    }

    private static ValidReaderWriteIdList writeIds(JsonNode of) {
        String table = of.get("table").textValue();
        long[] ids = as(long[].class, of.get("ids"));
        long high = of.get("high").asLong(), min = of.get("min").asLong();
        return of.get("view").asText().equals("compactor")
            ? new ValidCompactorWriteIdList(table, ids, aborted(of), high, min)
            : new ValidReaderWriteIdList(table, ids, aborted(of), high, min);
    }

    private static BitSet aborted(JsonNode of) {
        return BitSet.valueOf(as(long[].class, of.get("aborted")));
    }

    private static String file(JsonNode of) throws Exception {
        // only a file's own name sets what Hive calls the old style
        boolean isOriginal = of.get("original").asBoolean();
        Path like = new Path(isOriginal ? "/t/000000_0" : "/t/base_1/bucket_0");
        AcidOutputFormat.Options options = AcidUtils.parseBaseOrDeltaBucketFilename(like, CONF)
            .writingBase(of.get("base").asBoolean())
            .writingDeleteDelta(of.get("delete").asBoolean())
            .minimumWriteId(of.get("min").asLong())
            .maximumWriteId(of.get("max").asLong())
            .statementId(of.get("statement").asInt())
            .visibilityTxnId(of.get("visibility").asLong())
            .bucket(of.get("bucket").asInt())
            .attemptId(of.get("attempt").isNull() ? null : of.get("attempt").asInt());
        Path directory = AcidUtils.baseOrDeltaSubdirPath(new Path("/t"), options);
        Path path = AcidUtils.createFilename(isOriginal ? directory : new Path("/t"), options);
        String copy = of.get("copy").isNull() ? "" : Utilities.COPY_KEYWORD + of.get("copy").asInt();
        return path.toString().substring("/t/".length()) + copy;
    }

    private static void read(String ask, String text, JsonNode request, ObjectNode answer) throws Exception {
        long[] probes = as(long[].class, request.get("probes"));
        switch (ask) {
            case "read txns":
                ValidReadTxnList txns = new ValidReadTxnList();
                txns.readFromString(text);
                answer.put("high", txns.getHighWatermark()).put("min", txns.getMinOpenTxn());
                put(answer, "invalid", LongStream.of(txns.getInvalidTransactions()));
                put(answer, "valid", LongStream.of(probes).filter(txns::isTxnValid));
                put(answer, "aborted", LongStream.of(probes).filter(txns::isTxnAborted));
                break;
            case "read ids": readIds(text, request, probes, answer); break;
            case "read tables":
                ValidTxnWriteIdList lists = tables(text);
                answer.put("txn", Long.parseLong(lists.toString().split("\\$")[0]));
                for (String table : as(String[].class, request.get("tables"))) {
                    ValidWriteIdList list = lists.getTableValidWriteIdList(table);
                    if (list != null) describe(list, answer.putObject(table));
                }
                break;
            case "read partition":
                Warehouse.makeSpecFromName(text).forEach(
                    (key, value) -> answer.withArray("spec").addArray().add(key).add(value));
                Warehouse.makeValsFromName(text, null).forEach(answer.withArray("values")::add);
                break;
            case "read value":
                answer.put("plain", FileUtils.unescapePathName(text)).put("escaped", FileUtils.escapePathName(text));
                break;
            case "read directory": readDirectory(new Path("/t/" + text), answer); break;
            default: readFile(new Path("/t/" + text), answer);
        }
    }

    private static void readIds(String text, JsonNode request, long[] probes, ObjectNode answer) {
        String view = request.get("view").asText();
        ValidReaderWriteIdList read = view.equals("compactor") ? new ValidCompactorWriteIdList() : new ValidReaderWriteIdList();
        read.readFromString(text);
        ValidReaderWriteIdList list = view.equals("cleaner") ? new ValidCleanerWriteIdList(read) : read;
        describe(list, answer);
        put(answer, "valid", LongStream.of(probes).filter(list::isWriteIdValid));
        put(answer, "aborted", LongStream.of(probes).filter(list::isWriteIdAborted));
        put(answer, "base", LongStream.of(probes).filter(list::isValidBase));
        for (long[] range : as(long[][].class, request.get("ranges"))) {
            answer.withArray("ranges valid").add(list.isWriteIdRangeValid(range[0], range[1]).name());
            answer.withArray("ranges aborted").add(list.isWriteIdRangeAborted(range[0], range[1]).name());
        }
    }

    private static void describe(ValidWriteIdList list, ObjectNode answer) {
        answer.put("table", list.getTableName());
        answer.put("high", list.getHighWatermark()).put("min", list.getMinOpenWriteId());
        put(answer, "invalid", LongStream.of(list.getInvalidWriteIds()));
    }

    private static ValidTxnWriteIdList tables(String text) throws Exception {
        ValidTxnWriteIdList lists = new ValidTxnWriteIdList(0L);
        Method read = ValidTxnWriteIdList.class.getDeclaredMethod("readFromString", String.class);
        read.setAccessible(true); // 4.0.1 calls it in a constructor, 4.2.0 in a static method
        try {
            read.invoke(lists, text);
        } catch (InvocationTargetException error) {
            throw (Exception) error.getCause();
        }
        return lists;
    }

    private static void readDirectory(Path path, ObjectNode answer) {
        String name = path.getName();
        if (name.startsWith(AcidUtils.BASE_PREFIX)) {
            AcidUtils.ParsedBaseLight base = AcidUtils.ParsedBaseLight.parseBase(path);
            answer.put("kind", "base").put("min", base.getWriteId()).put("max", base.getWriteId())
                .put("visibility", base.getVisibilityTxnId());
        } else if (name.startsWith(AcidUtils.DELTA_PREFIX) || name.startsWith(AcidUtils.DELETE_DELTA_PREFIX)) {
            AcidUtils.ParsedDeltaLight delta = AcidUtils.ParsedDeltaLight.parse(path);
            answer.put("kind", delta.isDeleteDelta() ? "delete_delta" : "delta");
            answer.put("min", delta.getMinWriteId()).put("max", delta.getMaxWriteId());
            answer.put("statement", delta.hasStatementId() ? delta.getStatementId() : null)
                .put("visibility", delta.getVisibilityTxnId());
        }
    }

    private static void readFile(Path path, ObjectNode answer) throws Exception {
        AcidOutputFormat.Options options = AcidUtils.parseBaseOrDeltaBucketFilename(path, CONF);
        String name = path.getName();
        boolean isOriginal = AcidUtils.originalBucketFilter.accept(path);
        answer.put("bucket", options.getBucketId()).put("attempt", AcidUtils.parseAttemptId(path));
        answer.put("original", isOriginal).put("hidden", !FileUtils.HIDDEN_FILES_PATH_FILTER.accept(path));
        answer.put("side", name.startsWith(AcidUtils.BUCKET_PREFIX) && !AcidUtils.bucketFileFilter.accept(path));
        answer.put("task", isOriginal ? Utilities.getBucketIdFromFile(name) : null);
        if (options.getBucketId() >= 0) {
            int property = BucketCodec.V1.encode(options);
            answer.put("property", property)
                .put("decoded", BucketCodec.determineVersion(property).decodeWriterId(property));
        }
    }

    private static void put(ObjectNode answer, String field, LongStream numbers) {
        numbers.sorted().distinct().forEach(answer.putArray(field)::add);
    }

    private static <T> T as(Class<T> type, JsonNode node) {
        return JSON.convertValue(node, type);
    }
}
