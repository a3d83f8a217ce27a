/// One function a kind of data.
#include "apps/gradus/data.h"
#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include "gradus/base/input_file.h"
#include "gradus/base/nearest.h"
#include "gradus/formats/json.h"

namespace gradus::command {
namespace {

Split split_of(Dataset<2> raw, const std::string& source) {
  const std::int64_t examples = raw.cardinality().value();
  require<DataError>(examples > 0, source, ": there are no examples in it; expected at least one");
  return {std::move(raw), examples};
}

struct Splits {
  Split train, test;
  std::vector<LabelsOfFile> labels = {};
};

/// The same examples are for testing in every run.
Splits divided(const Dataset<2>& all, const DataConfig& config, const std::string& source) {
  const std::int64_t examples = all.cardinality().value();
  const auto testing = static_cast<std::int64_t>(static_cast<double>(examples) * config.test_share);
  require<DataError>(testing > 0 && testing < examples, source, ": of ", examples, " examples the test_share ",
                     config.test_share, " leaves none for ", testing > 0 ? "training" : "testing");
  const Dataset<2> drawn = all.shuffle({.seed = 1, .reshuffle_each_iteration = false});
  return {{drawn.skip(testing), examples - testing}, {drawn.take(testing), testing}};
}

Split split_of(Dataset<3> weighted, const std::string& source) {
  Split split = split_of(weighted.map([](Tensor x, Tensor y, Tensor) { return std::pair{x, y}; }), source);
  split.weighted = std::move(weighted);
  return split;
}
/// Weights go with their examples.
Splits divided(const Dataset<3>& all, const DataConfig& config, const std::string& source) {
  const Split whole = split_of(all, source);
  Splits parts = divided(whole.raw, config, source);
  const Dataset<3> drawn = all.shuffle({.seed = 1, .reshuffle_each_iteration = false});  // as that of `raw`
  parts.train.weighted = drawn.skip(parts.test.examples);
  parts.test.weighted = drawn.take(parts.test.examples);
  return parts;
}

Splits load_idx(const DataConfig& config) {
  const auto load = [&](const std::string& images, const std::string& labels) {
    return split_of(data::from_idx(config.directory / images, config.directory / labels),
                    (config.directory / images).string());
  };
  Splits splits{load(config.train_images, config.train_labels), load(config.test_images, config.test_labels)};
  if (config.task == "regression") {
    for (Split* split : {&splits.train, &splits.test})
      split->raw = split->raw.map([](Tensor x, Tensor y) { return std::pair{x, cast(y, f32)}; });
    return splits;
  }
  for (const std::string& name : {config.train_labels, config.test_labels}) {
    const std::filesystem::path file = config.directory / name;
    const IdxArray found = read_idx(file);
    splits.labels.push_back({cast(Tensor::of_buffer({found.dtype, Shape(found.dims)}, found.data), i32),
                             [file](std::int64_t row) { return text(file.string(), ": example ", row); }});
  }
  return splits;
}

Splits load_images(const DataConfig& config, DataFacts& facts) {
  const std::filesystem::path train = config.directory / config.train, test = config.directory / config.test;
  const Dataset<2> all = data::images_from_directory(train, image_options(config));
  facts.classes = data::class_names(train);
  if (config.test.empty()) return divided(all, config, train.string());
  require<DataError>(data::class_names(test) == facts.classes, "images: ", train.string(), " and ", test.string(),
                     " have other folders; expected the same classes in both");
  return {split_of(all, train.string()),
          split_of(data::images_from_directory(test, image_options(config)), test.string())};
}

Splits load_arrays(const DataConfig& config) {
  const std::filesystem::path file = config.directory / config.file;
  const NamedTensors arrays = load_npz(file);
  std::vector<LabelsOfFile> labels;
  const auto load = [&](const std::string& x, const std::string& y) {
    const std::string x_place = text(file.string(), ", ", x), y_place = text(file.string(), ", ", y);
    const Tensor features = as_features(array_named(x, arrays, file.string()), x_place);
    const auto place = [y_place](std::int64_t row) { return text(y_place, ": row ", row); };
    const Tensor answers = as_labels(array_named(y, arrays, file.string()), config.task, place);
    const std::int64_t rows = features.shape()[0], others = answers.shape()[0];
    require<DataError>(rows == others, x_place, " has ", rows, " rows, ", y, " has ", others);
    if (answers.dtype() == i32) labels.push_back({answers, place});
    return data::from_tensor_slices(features, answers);
  };
  const Dataset<2> all = load(config.train_x, config.train_y);
  Splits splits = config.test_x.empty() ? divided(all, config, file.string())
                                        : Splits{split_of(all, file.string()),
                                                 split_of(load(config.test_x, config.test_y), file.string())};
  splits.labels = std::move(labels);
  return splits;
}

/// Takes the column of weights out of the features.
Tensor take_weights(CsvTable& table, const std::string& column, const std::string& source) {
  const auto at = std::ranges::find(table.columns, column);
  require<DataError>(at != table.columns.end(), source, ": there is no column `", column, "` for sample_weight",
                     did_you_mean(column, table.columns));
  require<DataError>(std::ranges::count(table.columns, column) == 1, source, ": two columns are called `", column,
                     "`, which is for sample_weight");
  const auto place = static_cast<std::int64_t>(at - table.columns.begin());
  const std::int64_t width = table.features.shape()[1];
  const Tensor weights = squeeze(slice(table.features, {0, place}, {-1, 1}), {1});
  const auto values = weights.span<float>();
  for (std::size_t row = 0; row < values.size(); ++row)
    require<DataError>(values[row] >= 0 && std::isfinite(values[row]), source, ":", table.lines[row], ": column `",
                       column, "`: a weight of ", values[row], "; expected 0 or a positive number");
  table.features = concat(
      {slice(table.features, {0, 0}, {-1, place}), slice(table.features, {0, place + 1}, {-1, width - place - 1})}, 1);
  table.columns.erase(at);
  return weights;
}

/// `facts` are those of a run, or empty.
Splits load_table(const DataConfig& config, DataFacts& facts) {
  const std::filesystem::path train = config.directory / config.train, test = config.directory / config.test;
  const bool weighted = !config.sample_weight.empty();
  const auto places_of = [&](const CsvTable& table, const std::filesystem::path& file) {
    return [file, column = config.label, lines = table.lines](std::int64_t row) {
      return text(file.string(), ":", lines[static_cast<std::size_t>(row)], ": column `", column, "`");
    };
  };
  const auto read = [&](const std::filesystem::path& file) {
    CsvOptions options = csv_options(config, facts);
    if (weighted && !options.columns.empty()) options.columns.push_back(config.sample_weight);
    CsvTable table = load_csv(file, options);
    if (table.label.shape()[0] > 0) table.label = as_labels(table.label, config.task, places_of(table, file));
    return table;
  };
  const auto labels_of = [&](const CsvTable& table, const std::filesystem::path& file) {
    if (table.label.dtype() != i32) return std::vector<LabelsOfFile>();
    return std::vector<LabelsOfFile>{{table.label, places_of(table, file)}};
  };
  CsvTable table = read(train);
  std::vector<LabelsOfFile> labels = labels_of(table, train);
  const Tensor weights = weighted ? take_weights(table, config.sample_weight, train.string()) : Tensor();
  facts.columns = table.columns;
  facts.categories = table.categories;
  if (const auto words = table.categories.find(config.label); words != table.categories.end())
    facts.classes = words->second;
  require<DataError>(!table.columns.empty(), train.string(), ": there is no column beside the label");
  const auto splits = [&](const auto& examples_of) -> Splits {
    const auto all = examples_of(table, weights);
    if (config.test.empty()) return divided(all, config, train.string());
    CsvTable others = read(test);
    const Tensor of_others = weighted ? take_weights(others, config.sample_weight, test.string()) : Tensor();
    std::ranges::move(labels_of(others, test), std::back_inserter(labels));
    return {split_of(all, train.string()), split_of(examples_of(others, of_others), test.string())};
  };
  Splits found =
      weighted ? splits([](const CsvTable& t, const Tensor& weight) {
        return data::from_tensor_slices(t.features, t.label, weight);
      })
               : splits([](const CsvTable& t, const Tensor&) { return data::from_tensor_slices(t.features, t.label); });
  found.labels = std::move(labels);
  return found;
}

/// The end of the text is for testing. Characters are those of the whole text, unless a run has told them.
Data load_text(const DataConfig& config, std::optional<Vocabulary> known) {
  const std::filesystem::path file = config.directory / config.text;
  const std::string source = "text " + file.string(), text = read_text_file(file);
  const Vocabulary vocabulary = known ? std::move(*known) : Vocabulary::of_text(text, source);
  const std::vector<std::int32_t> all = vocabulary.encode(text, source);
  const auto kept = static_cast<std::ptrdiff_t>(static_cast<double>(all.size()) * (1 - config.test_share));
  const auto split = [&](std::vector<std::int32_t> part, std::int64_t stride) {
    const Dataset<2> raw = windows(part, config.context, stride, source);
    return Split{raw, raw.cardinality().value()};
  };
  const Spec input{i32, {any_size, config.context}};
  return {split({all.begin(), all.begin() + kept}, config.stride),
          split({all.begin() + kept, all.end()}, config.context),
          input,
          vocabulary,
          {.input = input}};
}

Data load(const DataConfig& config, DataFacts facts) {
  facts.classes = config.class_names;
  Splits splits = config.kind == "images" ? load_images(config, facts)
                  : config.kind == "npz"  ? load_arrays(config)
                  : config.kind == "csv"  ? load_table(config, facts)
                                          : load_idx(config);
  const auto train = splits.train.raw.element_spec(), test = splits.test.raw.element_spec();
  require<DataError>(train == test, "training examples are ", train[0], " and ", train[1], ", test examples ", test[0],
                     " and ", test[1], "; they must agree");
  facts.of_classes = train[1].dtype == i32;
  facts.raw = train[0].dtype;
  require<DataError>(!facts.of_classes || train[1].shape.rank() == 0, "the labels are ", train[1],
                     "; expected one class for each example");
  Spec input{train[0].dtype == i32 ? i32 : f32, train[0].shape};
  input.shape.insert(0, any_size);
  facts.input = input;
  return {std::move(splits.train), std::move(splits.test), input, {}, std::move(facts), std::move(splits.labels)};
}

}  // namespace

std::int64_t Data::outputs() const {
  return vocabulary ? vocabulary->size() : static_cast<std::int64_t>(facts.classes.size());
}

Data load_data(const DataConfig& config) {
  return config.kind == "text" ? load_text(config, {}) : load(config, DataFacts{});
}

Data load_data(const DataConfig& config, const std::filesystem::path& run) {
  if (config.kind == "text") return load_text(config, Vocabulary::read(run / "vocabulary.json"));
  const DataFacts facts = read_facts(run / "data.json");
  Data data = load(config, facts);
  require<DataError>(data.facts.classes == facts.classes, "the classes of ", config.directory.string(),
                     " are not those that ", run.string(), " was trained with");
  return data;
}

namespace {

// Names of folders and words of tables need not be UTF-8, as JSON has to be: a byte that is none stands as the letter
// U+EF00 + byte, which is unassigned. Bytes of such a letter itself do, too, so that every text comes back.

bool is_utf8(const std::string& text) {
  try {
    (void)nlohmann::json(text).dump();
    return true;
  } catch (const nlohmann::json::type_error&) { return false; }
}

/// The letter that begins here, if it is U+EF80 ... U+EFFF.
std::optional<int> letter_of_byte(std::string_view rest) {
  const auto bits = [&](std::size_t i) { return static_cast<unsigned char>(rest[i]); };
  if (rest.size() < 3 || bits(0) != 0xEE || (bits(1) != 0xBE && bits(1) != 0xBF) || bits(2) >> 6 != 2) return {};
  return 0xE000 + (bits(1) & 0x3F) * 64 + (bits(2) & 0x3F);
}

std::string as_utf8(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t bytes = letter_of_byte(std::string_view(text).substr(i)) ? 5 : 1;
    while (bytes < 5 && !is_utf8(text.substr(i, bytes))) ++bytes;
    if (bytes < 5) {
      out += text.substr(i, bytes);
      i += bytes;
    } else {
      const int letter = 0xEF00 + static_cast<unsigned char>(text[i++]);
      out += {'\xEE', static_cast<char>(0x80 | ((letter >> 6) & 0x3F)), static_cast<char>(0x80 | (letter & 0x3F))};
    }
  }
  return out;
}

std::string from_utf8(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const auto letter = letter_of_byte(std::string_view(text).substr(i));
    out += letter ? static_cast<char>(*letter - 0xEF00) : text[i];
    i += letter ? 3u : 1u;
  }
  return out;
}

using Words = std::vector<std::string>;
using WordsByName = std::map<std::string, Words>;

Words each(const Words& words, std::string (*convert)(const std::string&)) {
  Words out;
  for (const std::string& word : words) out.push_back(convert(word));
  return out;
}
WordsByName each(const WordsByName& lists, std::string (*convert)(const std::string&)) {
  WordsByName out;
  for (const auto& [name, words] : lists) out[convert(name)] = each(words, convert);
  return out;
}

}  // namespace

std::string to_json(const DataFacts& facts) {
  std::vector<std::int64_t> example;
  for (int i = 1; i < facts.input.shape.rank(); ++i) example.push_back(facts.input.shape[i]);
  nlohmann::json json{{"example", example},
                      {"is_tokens", facts.input.dtype == i32},
                      {"classes", each(facts.classes, as_utf8)},
                      {"columns", each(facts.columns, as_utf8)},
                      {"categories", each(facts.categories, as_utf8)},
                      {"of_classes", facts.of_classes}};
  if (facts.raw) json["dtype"] = name_of(*facts.raw);
  if (facts.checksum) json["checksum"] = to_json_value(*facts.checksum);
  return json.dump(2) + '\n';
}

namespace {

DType dtype_of_facts(const std::string& name, const std::filesystem::path& file) {
  for (const DType t : all_dtypes)
    if (name_of(t) == name) return t;
  throw DataError(text(file.string(), ": there is no dtype `", name, "`"));
}

}  // namespace

DataFacts read_facts(const std::filesystem::path& file) {
  try {
    const auto json = parse_json(read_text_file(file), file.string());
    DataFacts facts;
    facts.input = {json.at("is_tokens").get<bool>() ? i32 : f32, {any_size}};
    for (const std::int64_t size : json.at("example").get<std::vector<std::int64_t>>()) {
      require<DataError>(size >= 0, file.string(), ": a size of an example is ", size);
      facts.input.shape.push_back(size);
    }
    facts.classes = each(json.at("classes").get<Words>(), from_utf8);
    facts.columns = each(json.at("columns").get<Words>(), from_utf8);
    facts.categories = each(json.at("categories").get<WordsByName>(), from_utf8);
    json.at("of_classes").get_to(facts.of_classes);
    if (json.contains("dtype")) facts.raw = dtype_of_facts(json["dtype"].get<std::string>(), file);
    if (json.contains("checksum")) facts.checksum = checksum_from(json["checksum"]);
    return facts;
  } catch (const nlohmann::json::exception& error) {
    throw DataError(text(file.string(), ": this is no data.json of a run: ", error.what()));
  }
}

CsvOptions csv_options(const DataConfig& config, const DataFacts& facts) {
  CsvOptions options{.label = config.label,
                     .header = config.header,
                     .separator = config.separator,
                     .missing_value = config.missing_value,
                     .missing_category = config.category_encoding == "integer" ? std::nullopt : std::optional(-1.0),
                     .categories = facts.categories,
                     .columns = facts.columns.empty() ? config.columns : facts.columns};
  for (const std::string& column : config.categories) options.categories.try_emplace(column);
  return options;
}

data::ImageOptions image_options(const DataConfig& config) {
  return {.height = config.height, .width = config.width, .channels = static_cast<int>(config.channels)};
}

Tensor array_named(const std::string& name, const NamedTensors& arrays, const std::string& source) {
  std::vector<std::string> known;
  for (const auto& [key, array] : arrays) {
    if (key == name) return array;
    known.push_back(key);
  }
  throw DataError(text(source, ": there is no array `", name, "`", did_you_mean(name, known)));
}

Tensor as_labels(const Tensor& y, const std::string& task, const std::function<std::string(std::int64_t row)>& place) {
  require<DataError>(y.shape().rank() > 0, place(0), ": this is a scalar; expected one label for each example");
  if (task == "regression") return cast(y, f32);
  const bool column = y.shape().rank() == 2 && y.shape()[1] == 1;
  const std::vector<double> values = cast(y, f64).to_vector<double>();
  const auto odd = std::ranges::find_if(values, [](double value) {
    return std::trunc(value) != value || std::abs(value) > std::numeric_limits<std::int32_t>::max();
  });
  const bool whole = odd == values.end();
  if (task == "automatic" && (is_floating(y.dtype()) || !whole)) return cast(y, f32);
  const std::int64_t width = std::max<std::int64_t>(1, y.shape().size() / std::max<std::int64_t>(1, y.shape()[0]));
  require<ConfigError>(whole, "train.task or train.loss is of classes, but the labels are numbers: ",
                       whole ? "" : place((odd - values.begin()) / width), ": the label ", whole ? 0 : *odd,
                       " is no class; expected integers from 0 on, or task = \"regression\"");
  return cast(column ? squeeze(y, {1}) : y, i32);
}

Tensor as_features(const Tensor& x, const std::string& place) {
  require<DataError>(x.shape().rank() > 0, place, ": this is a scalar; expected one row for each example");
  if (is_floating(x.dtype())) return cast(x, f32);
  if (x.dtype() != i64) return x;
  for (const std::int64_t value : x.span<std::int64_t>())
    require<DataError>(
        value >= std::numeric_limits<std::int32_t>::min() && value <= std::numeric_limits<std::int32_t>::max(), place,
        ": ", value, " is no i32");
  return cast(x, i32);
}

void check_labels(const Data& data, std::int64_t classes) {
  for (const LabelsOfFile& labels : data.labels) {
    const auto values = labels.classes.span<std::int32_t>();
    for (std::size_t row = 0; row < values.size(); ++row)
      require<DataError>(values[row] >= 0 && values[row] < classes, labels.place(static_cast<std::int64_t>(row)),
                         ": the label ", values[row], " is none of the classes 0 to ", classes - 1,
                         " of the model; mend the data, or the units of its last layer");
  }
}

void check_columns(const DataConfig& config, const DataFacts& facts, const std::filesystem::path& run) {
  if (config.kind != "csv") return;
  const auto listed = [](const std::vector<std::string>& names) {
    std::string all;
    for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
    return all.empty() ? "none" : all;
  };
  const auto check = [&](const char* key, const std::vector<std::string>& now, const std::vector<std::string>& then) {
    require<ConfigError>(now == then, run.string(), ": data.", key, " of its config.toml is ", listed(now),
                         ", and the run was trained with ", listed(then), "; go on with those, or begin a ",
                         "training in another directory");
  };
  if (!config.columns.empty()) check("columns", config.columns, facts.columns);
  std::vector<std::string> words, now = config.categories;
  for (const auto& [column, list] : facts.categories) words.push_back(column);
  std::ranges::sort(now);
  now.erase(std::unique(now.begin(), now.end()), now.end());
  check("categories", now, words);
}

std::int64_t test_batch(const DataConfig& config) { return config.kind == "text" ? 100 : 1000; }

Tensor prepared(const Tensor& x, const DataConfig& config) {
  if (x.dtype() == i32 || config.kind == "csv") return x;
  const double unit = x.dtype() == u8 ? 255 : 1;
  const double scale = 1 / (unit * config.deviation), shift = -config.mean / config.deviation;
  return cast(x, f32) * scale + shift;
}

namespace {

/// A number to predict, which becomes [1].
bool is_single(const Spec& y) { return y.dtype == f32 && y.shape.rank() == 0; }
/// Images are decoded while the model computes, unless the configuration says otherwise.
template <std::size_t N> Dataset<N> made_ahead(const Dataset<N>& made, const DataConfig& config) {
  return config.prefetch.value_or(config.kind == "images") ? made.prefetch() : made;
}
MapOptions map_options(const DataConfig& config) {
  const auto calls = static_cast<int>(config.num_parallel_calls);
  return {.num_parallel_calls = calls > 0 ? calls : autotune};
}

}  // namespace

Dataset<2> batches(const Dataset<2>& raw, const DataConfig& config, std::int64_t batch_size) {
  if (config.kind == "text") return made_ahead(raw.batch(batch_size), config);
  const bool single = is_single(raw.element_spec()[1]);
  const Dataset<2> made =
      raw.batch(batch_size)
          .map([config, single](Tensor x,
                                Tensor y) { return std::pair{prepared(x, config), single ? expand_dims(y, -1) : y}; },
               map_options(config));
  return made_ahead(made, config);
}

Dataset<3> batches(const Dataset<3>& raw, const DataConfig& config, std::int64_t batch_size) {
  const bool single = is_single(raw.element_spec()[1]);
  const Dataset<3> made = raw.batch(batch_size)
                              .map(
                                  [config, single](Tensor x, Tensor y, Tensor weight) {
                                    return std::tuple{prepared(x, config), single ? expand_dims(y, -1) : y, weight};
                                  },
                                  map_options(config));
  return made_ahead(made, config);
}

}  // namespace gradus::command
