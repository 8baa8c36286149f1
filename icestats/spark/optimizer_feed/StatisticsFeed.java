package icestats;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.LocalScan;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.SupportsPushDownV2Filters;
import org.apache.spark.sql.connector.read.SupportsReportStatistics;
import org.apache.spark.sql.connector.read.colstats.ColumnStatistics;
import org.apache.spark.sql.connector.read.colstats.Histogram;
import org.apache.spark.sql.connector.read.colstats.HistogramBin;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Iceberg's table for Spark, with other statistics for the optimizer. Table, scan builder and scan are proxies that have
 * every interface of Iceberg's own objects and pass each call on to them; only the statistics of the scan differ.
 *
 * <p>Janino compiles this in the driver's JVM: no lambdas, and no generic types to rely on.
 */
public final class StatisticsFeed {
  private static final Logger LOG = LoggerFactory.getLogger("icestats");

  private final Set said = new HashSet();
  private final BlockingQueue failures = new LinkedBlockingQueue();

  /** Returns a table that reads as the given one. */
  public Object wrap(Object table, String figures) throws Exception {
    return proxy(table, new TableCalls(table, new TableFigures(new ObjectMapper().readTree(figures)), this));
  }

  /** Fails where the figures cannot be made into statistics for Spark. */
  public int check(String figures) throws Exception {
    TableFigures table = new TableFigures(new ObjectMapper().readTree(figures));
    int count = 0;
    Iterator columns = table.columns.values().iterator();
    while (columns.hasNext()) {
      ColumnStatistics column = ((ColumnFigures) columns.next()).report(table.rows, table.rows, new ArrayList());
      if (column.histogram().isPresent()) {
        count += ((Histogram) column.histogram().get()).bins().length;
      }
    }
    return count;
  }

  /** Says once why Iceberg's own statistics are used after all. */
  synchronized void warn(Throwable error) {
    String why = String.valueOf(error);
    if (said.add(why)) {
      failures.add(why);
      LOG.warn("Spark plans with Iceberg's own statistics, not with those of icestats: {}", why);
    }
  }

  /** Waits for the next reason that `warn` is given, and returns it. */
  public String takeFailure() throws InterruptedException {
    return (String) failures.take();
  }

  static Object proxy(Object target, Calls calls) {
    Set interfaces = new LinkedHashSet();
    for (Class type = target.getClass(); type != null; type = type.getSuperclass()) {
      interfaces.addAll(Arrays.asList(type.getInterfaces()));
    }
    Class[] found = (Class[]) interfaces.toArray(new Class[interfaces.size()]);
    return Proxy.newProxyInstance(StatisticsFeed.class.getClassLoader(), found, calls);
  }
}

/** Passes calls on to one of Iceberg's objects. */
abstract class Calls implements InvocationHandler {
  final Object target;
  final StatisticsFeed feed;

  Calls(Object target, StatisticsFeed feed) {
    this.target = target;
    this.feed = feed;
  }

  public Object invoke(Object proxy, Method method, Object[] arguments) throws Throwable {
    if (method.getName().equals("equals") && arguments != null && arguments.length == 1) {
      return Boolean.valueOf(target.equals(unwrap(arguments[0])));
    }
    Object answer;
    try {
      answer = method.invoke(target, arguments);
    } catch (InvocationTargetException error) {
      throw error.getCause();
    }
    try {
      return change(method.getName(), arguments, answer);
    } catch (Throwable error) {
      feed.warn(error);
      return answer;
    }
  }

  /** Returns what the call answers, given what Iceberg answers. */
  abstract Object change(String name, Object[] arguments, Object answer) throws Exception;

  private static Object unwrap(Object other) {
    if (other == null || !Proxy.isProxyClass(other.getClass())) {
      return null;
    }
    InvocationHandler handler = Proxy.getInvocationHandler(other);
    return handler instanceof Calls ? ((Calls) handler).target : null;
  }
}

final class TableCalls extends Calls {
  private final TableFigures figures;

  TableCalls(Object target, TableFigures figures, StatisticsFeed feed) {
    super(target, feed);
    this.figures = figures;
  }

  Object change(String name, Object[] arguments, Object answer) {
    if (!name.equals("newScanBuilder") || !(answer instanceof SupportsPushDownV2Filters)) {
      return answer;
    }
    CaseInsensitiveStringMap options = (CaseInsensitiveStringMap) arguments[0];
    return StatisticsFeed.proxy(answer, new BuilderCalls(answer, (SupportsRead) target, options, figures, feed));
  }
}

final class BuilderCalls extends Calls {
  private final SupportsRead table;
  private final CaseInsensitiveStringMap options;
  private final TableFigures figures;
  private Predicate[] given = new Predicate[0];
  private Predicate[] kept = new Predicate[0];

  BuilderCalls(
      Object target, SupportsRead table, CaseInsensitiveStringMap options, TableFigures figures, StatisticsFeed feed) {
    super(target, feed);
    this.table = table;
    this.options = options;
    this.figures = figures;
  }

  Object change(String name, Object[] arguments, Object answer) {
    if (name.equals("pushPredicates")) {
      given = (Predicate[]) arguments[0];
      kept = (Predicate[]) answer;
    }
    if (!name.equals("build") || !(answer instanceof SupportsReportStatistics) || answer instanceof LocalScan) {
      return answer;
    }
    Predicate[] pushed = ((SupportsPushDownV2Filters) target).pushedPredicates();
    return StatisticsFeed.proxy(answer, new ScanCalls(answer, this, pushed, feed));
  }

  /** Predicates that Iceberg evaluates fully, so that Spark has no filter for them. */
  List evaluated() {
    List found = new ArrayList(Arrays.asList(given));
    found.removeAll(Arrays.asList(kept));
    return found;
  }

  TableFigures figures() {
    return figures;
  }

  /** Counts the rows of the files that some of the predicates leave. */
  long count(List predicates) {
    ScanBuilder builder = table.newScanBuilder(options);
    ((SupportsPushDownV2Filters) builder)
        .pushPredicates((Predicate[]) predicates.toArray(new Predicate[predicates.size()]));
    return ((SupportsReportStatistics) builder.build()).estimateStatistics().numRows().getAsLong();
  }
}

final class ScanCalls extends Calls {
  private final BuilderCalls builder;
  private final Predicate[] pushed;
  private ScanStatistics full;

  ScanCalls(Object target, BuilderCalls builder, Predicate[] pushed, StatisticsFeed feed) {
    super(target, feed);
    this.builder = builder;
    this.pushed = pushed;
  }

  Object change(String name, Object[] arguments, Object answer) {
    if (!name.equals("estimateStatistics")) {
      return answer;
    }
    StructField[] fields = ((Scan) target).readSchema().fields();
    TableFigures figures = builder.figures();
    long plain = ((Statistics) answer).numRows().getAsLong();
    if (!SQLConf.get().cboEnabled()) {
      return new ScanStatistics(fields, figures, figures.live(plain), null);
    }
    if (full == null) {
      full = new ScanStatistics(fields, figures, countRows(figures, plain), builder.evaluated());
    }
    return full;
  }

  /**
   * Spark multiplies the rows of a scan by the selectivity of each filter that it keeps. So these are the rows before
   * such filters, though they prune files too; except for those filters that Spark cannot estimate.
   */
  private long countRows(TableFigures figures, long plain) {
    List evaluated = builder.evaluated();
    List counted = new ArrayList();
    for (int i = 0; i < pushed.length; i++) {
      if (evaluated.contains(pushed[i]) || !figures.canEstimate(pushed[i])) {
        counted.add(pushed[i]);
      }
    }
    if (counted.isEmpty()) {
      return figures.rows;
    }
    return figures.live(counted.size() == pushed.length ? plain : builder.count(counted));
  }
}

final class ScanStatistics implements Statistics {
  private final long rows;
  private final long size;
  private final Map columns = new HashMap();

  ScanStatistics(StructField[] fields, TableFigures figures, long rows, List evaluated) {
    this.rows = rows;
    long width = 0;
    for (int i = 0; i < fields.length; i++) {
      ColumnFigures column = (ColumnFigures) figures.columns.get(fields[i].name());
      width += column == null ? fields[i].dataType().defaultSize() : column.width();
      if (column != null && evaluated != null && rows > 0) {
        columns.put(new ColumnName(fields[i].name()), column.report(figures.rows, rows, evaluated));
      }
    }
    size = Math.max(1L, Math.multiplyExact(rows, width));
  }

  public OptionalLong sizeInBytes() {
    return OptionalLong.of(size);
  }

  public OptionalLong numRows() {
    return OptionalLong.of(rows);
  }

  public Map columnStats() {
    return columns;
  }
}

/** A column by the name that Spark compares: a FieldReference describes itself in backticks where a name is unusual. */
final class ColumnName implements NamedReference {
  private final String name;

  ColumnName(String name) {
    this.name = name;
  }

  public String[] fieldNames() {
    return new String[] {name};
  }

  public String describe() {
    return name;
  }
}

/** What is known of the table. */
final class TableFigures {
  final long rows;
  final double liveShare;
  final Map columns = new HashMap();

  TableFigures(JsonNode json) {
    rows = json.get("rows").asLong();
    liveShare = json.get("live_share").asDouble();
    Iterator all = json.get("columns").elements();
    while (all.hasNext()) {
      ColumnFigures column = new ColumnFigures((JsonNode) all.next());
      columns.put(column.name, column);
    }
  }

  /** Returns how many of the rows in data files are live, never more than the table has. */
  long live(long records) {
    return Math.min(rows, Math.round(records * liveShare));
  }

  /** Says whether Spark estimates a filter from what is reported, instead of taking all rows to pass. */
  boolean canEstimate(Predicate predicate) {
    String name = predicate.name();
    Expression[] parts = predicate.children();
    if (name.equals("AND") || name.equals("OR") || name.equals("NOT")) {
      for (int i = 0; i < parts.length; i++) {
        if (!(parts[i] instanceof Predicate) || !canEstimate((Predicate) parts[i])) {
          return false;
        }
      }
      return true;
    }
    Comparison found = Comparison.of(predicate);
    ColumnFigures column = found == null ? null : (ColumnFigures) columns.get(found.column);
    if (column == null || column.isBoolean()) {
      return column != null && found.values.isEmpty();
    }
    return column.isNumeric() || !found.isRange();
  }
}

/** A predicate that compares one column with literals. */
final class Comparison {
  final String column;
  final String operator;
  final List values;

  private Comparison(String column, String operator, List values) {
    this.column = column;
    this.operator = operator;
    this.values = values;
  }

  static Comparison of(Predicate predicate) {
    String operator = predicate.name();
    Expression[] parts = predicate.children();
    boolean isNull = operator.equals("IS_NULL") || operator.equals("IS_NOT_NULL");
    boolean isBinary = Arrays.asList(new Object[] {"=", "<=>", "<", "<=", ">", ">="}).contains(operator);
    if (!isNull && !isBinary && !operator.equals("IN")) {
      return null;
    }
    if (isBinary && parts[0] instanceof Literal) {
      parts = new Expression[] {parts[1], parts[0]};
      operator = operator.replace('<', '\0').replace('>', '<').replace('\0', '>');
      operator = operator.equals(">=<") ? "<=>" : operator;
    }
    if (!(parts[0] instanceof NamedReference) || ((NamedReference) parts[0]).fieldNames().length != 1) {
      return null;
    }
    List values = new ArrayList();
    for (int i = 1; i < parts.length; i++) {
      if (!(parts[i] instanceof Literal)) {
        return null;
      }
      values.add(((Literal) parts[i]).value());
    }
    return new Comparison(((NamedReference) parts[0]).fieldNames()[0], operator, values);
  }

  boolean isRange() {
    return operator.equals("<") || operator.equals("<=") || operator.equals(">") || operator.equals(">=");
  }
}

/** What is known of a column, over the whole table. */
final class ColumnFigures {
  static final long UNKNOWN = -1;

  final String name;
  private final String type;
  private final long ndv;
  private final long nulls;
  private final long averageLength;
  private final long maxLength;
  private final Object min;
  private final Object max;
  private final double height;
  private final double[] lows;
  private final double[] highs;
  private final long[] ndvs;

  ColumnFigures(JsonNode json) {
    name = json.get("name").asText();
    type = json.get("type").asText();
    ndv = json.has("ndv") ? json.get("ndv").asLong() : UNKNOWN;
    nulls = json.has("null_count") ? json.get("null_count").asLong() : UNKNOWN;
    averageLength = json.get("avg_length").asLong();
    maxLength = json.get("max_length").asLong();
    min = json.has("min") ? parse(json.get("min").asText()) : null;
    max = json.has("max") ? parse(json.get("max").asText()) : null;
    height = json.get("bin_height").asDouble();
    lows = readEnds(json.get("bin_lows"));
    highs = readEnds(json.get("bin_highs"));
    ndvs = new long[json.get("bin_ndvs").size()];
    for (int i = 0; i < ndvs.length; i++) {
      ndvs[i] = ((JsonNode) json.get("bin_ndvs").get(i)).asLong();
    }
    if (ndvs.length > 0) {
      // Spark asserts that bounds are within the bins.
      lows[0] = number(min);
      highs[ndvs.length - 1] = number(max);
    }
  }

  private double[] readEnds(JsonNode json) {
    double[] ends = new double[json.size()];
    for (int i = 0; i < ends.length; i++) {
      double value = ((JsonNode) json.get(i)).asDouble();
      // Spark makes doubles of a float's text: 0.1, not 0.10000000149011612.
      value = type.equals("float") ? Double.parseDouble(Float.toString((float) value)) : value;
      ends[i] = Math.min(Math.max(value, number(min)), number(max));
    }
    return ends;
  }

  private Object parse(String text) {
    if (type.equals("int") || type.equals("date")) {
      return Integer.valueOf(text);
    }
    if (type.equals("long") || type.equals("timestamptz")) {
      return Long.valueOf(text);
    }
    if (type.equals("float")) {
      return Float.valueOf(text);
    }
    if (type.equals("double")) {
      return Double.valueOf(text);
    }
    if (type.equals("boolean")) {
      return Boolean.valueOf(text);
    }
    return Decimal.apply(new BigDecimal(text));
  }

  private static double number(Object value) {
    return value instanceof Boolean ? (((Boolean) value).booleanValue() ? 1.0 : 0.0) : Double.parseDouble(value.toString());
  }

  /** Spark turns a comparison with true or false into the column itself, of which it knows nothing. */
  boolean isBoolean() {
    return type.equals("boolean");
  }

  boolean isNumeric() {
    return !type.equals("string") && !type.equals("binary");
  }

  /** Bytes in one of Spark's rows: a string has its address, offset and length beside it. */
  long width() {
    return averageLength + (type.equals("string") ? 12 : 0);
  }

  /** Returns what is known where some predicates leave so many of all rows. */
  ColumnStatistics report(long all, long rows, List evaluated) {
    double share = all == 0 ? 0.0 : Math.min(1.0, (double) rows / all);
    long nullRows = nulls == UNKNOWN ? UNKNOWN : Math.min(rows, Math.round(nulls * share));
    long distinct = ndv == UNKNOWN ? Long.MAX_VALUE : ndv;
    Object low = min;
    Object high = max;
    boolean isOwn = false;
    for (int i = 0; i < evaluated.size(); i++) {
      Comparison found = Comparison.of((Predicate) evaluated.get(i));
      if (found == null || !found.column.equals(name)) {
        continue;
      }
      isOwn = true;
      String operator = found.operator;
      if (operator.equals("IS_NULL")) {
        return new Reported(0, null, null, rows, this, null);
      }
      nullRows = 0;
      if (operator.equals("=") || operator.equals("<=>") || operator.equals("IN")) {
        distinct = Math.min(distinct, found.values.size());
      }
      if (low != null && !operator.equals("IS_NOT_NULL")) {
        Object least = extreme(found.values, false);
        Object most = extreme(found.values, true);
        boolean below = operator.startsWith("<") && !operator.equals("<=>");
        boolean above = operator.startsWith(">");
        if (!below && least != null && number(least) > number(low) && number(least) <= number(high)) {
          low = least;
        }
        if (!above && most != null && number(most) < number(high) && number(most) >= number(low)) {
          high = most;
        }
      }
    }
    if (ndv != UNKNOWN) {
      long values = rows - Math.max(nullRows, 0);
      double left = isOwn ? ndv * share : draw(ndv, all - Math.max(nulls, 0), values);
      distinct = Math.min(Math.min(distinct, Math.round(Math.ceil(left))), values);
      distinct = Math.max(distinct, values > 0 ? 1 : 0);
    }
    distinct = distinct == Long.MAX_VALUE ? UNKNOWN : distinct;
    Histogram histogram = ndvs.length == 0 ? null : new EquiHeight(height * share, lows, highs, ndvs);
    return new Reported(distinct, low, high, nullRows, this, histogram);
  }

  private static Object extreme(List values, boolean highest) {
    Object found = null;
    for (int i = 0; i < values.size(); i++) {
      Object value = values.get(i);
      if (value != null && (found == null || number(value) > number(found) == highest)) {
        found = value;
      }
    }
    return found;
  }

  /** Returns how many distinct values some rows are expected to have, drawn from all at random (Cardenas). */
  private static double draw(long distinct, long all, long rows) {
    if (distinct <= 0 || all <= 0 || rows >= all) {
      return distinct;
    }
    return distinct * (1.0 - Math.pow(1.0 - (double) rows / all, (double) all / distinct));
  }

  long averageLength() {
    return averageLength;
  }

  long maxLength() {
    return maxLength;
  }
}

final class Reported implements ColumnStatistics {
  private final long ndv;
  private final Object min;
  private final Object max;
  private final long nulls;
  private final ColumnFigures column;
  private final Histogram histogram;

  Reported(long ndv, Object min, Object max, long nulls, ColumnFigures column, Histogram histogram) {
    this.ndv = ndv;
    this.min = min;
    this.max = max;
    this.nulls = nulls;
    this.column = column;
    this.histogram = histogram;
  }

  public OptionalLong distinctCount() {
    return ndv == ColumnFigures.UNKNOWN ? OptionalLong.empty() : OptionalLong.of(ndv);
  }

  public Optional min() {
    return Optional.ofNullable(min);
  }

  public Optional max() {
    return Optional.ofNullable(max);
  }

  public OptionalLong nullCount() {
    return nulls == ColumnFigures.UNKNOWN ? OptionalLong.empty() : OptionalLong.of(nulls);
  }

  public OptionalLong avgLen() {
    return OptionalLong.of(column.averageLength());
  }

  public OptionalLong maxLen() {
    return OptionalLong.of(column.maxLength());
  }

  public Optional histogram() {
    return Optional.ofNullable(histogram);
  }
}

final class EquiHeight implements Histogram {
  private final double height;
  private final HistogramBin[] bins;

  EquiHeight(double height, double[] lows, double[] highs, long[] ndvs) {
    this.height = height;
    bins = new HistogramBin[ndvs.length];
    for (int i = 0; i < bins.length; i++) {
      bins[i] = new Bin(lows[i], highs[i], ndvs[i]);
    }
  }

  public double height() {
    return height;
  }

  public HistogramBin[] bins() {
    return bins;
  }
}

final class Bin implements HistogramBin {
  private final double lo;
  private final double hi;
  private final long ndv;

  Bin(double lo, double hi, long ndv) {
    this.lo = lo;
    this.hi = hi;
    this.ndv = ndv;
  }

  public double lo() {
    return lo;
  }

  public double hi() {
    return hi;
  }

  public long ndv() {
    return ndv;
  }
}
