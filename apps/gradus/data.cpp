/// One function a kind of data.
#include "apps/gradus/data.h"
#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include "gradus/base/nearest.h"

namespace gradus::command {
namespace {

Split split_of(Dataset<2> raw, const std::string& source) {
  const std::int64_t examples = raw.cardinality().value();
  require<DataError>(examples > 0, source, ": there are no examples in it");
  return {std::move(raw), examples};
}

struct Splits {
  Split train, test;
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
  return {load(config.train_images, config.train_labels), load(config.test_images, config.test_labels)};
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
  const auto load = [&](const std::string& x, const std::string& y) {
    return data::from_tensor_slices(as_features(array_named(x, arrays, file.string()), text(file.string(), ", ", x)),
                                    as_labels(array_named(y, arrays, file.string()), text(file.string(), ", ", y)));
  };
  const Dataset<2> all = load(config.train_x, config.train_y);
  if (config.test_x.empty()) return divided(all, config, file.string());
  return {split_of(all, file.string()), split_of(load(config.test_x, config.test_y), file.string())};
}

/// Takes the column of weights out of the features.
Tensor take_weights(CsvTable& table, const std::string& column, const std::string& source) {
  const auto at = std::ranges::find(table.columns, column);
  require<DataError>(at != table.columns.end(), source, ": there is no column `", column, "` for sample_weight",
                     did_you_mean(column, table.columns));
  const auto place = static_cast<std::int64_t>(at - table.columns.begin());
  const std::int64_t width = table.features.shape()[1];
  const Tensor weights = squeeze(slice(table.features, {0, place}, {-1, 1}), {1});
  for (const float weight : weights.to_vector<float>())
    require<DataError>(weight >= 0, source, ": column `", column, "` has a weight of ", weight,
                       "; expected 0 or a positive number");
  table.features = concat(
      {slice(table.features, {0, 0}, {-1, place}), slice(table.features, {0, place + 1}, {-1, width - place - 1})}, 1);
  table.columns.erase(at);
  return weights;
}

/// `facts` are those of a run, or empty.
Splits load_table(const DataConfig& config, DataFacts& facts) {
  const std::filesystem::path train = config.directory / config.train, test = config.directory / config.test;
  const bool weighted = !config.sample_weight.empty();
  const auto read = [&](const std::filesystem::path& file) {
    CsvOptions options = csv_options(config, facts);
    if (weighted && !options.columns.empty()) options.columns.push_back(config.sample_weight);
    return load_csv(file, options);
  };
  CsvTable table = read(train);
  const Tensor weights = weighted ? take_weights(table, config.sample_weight, train.string()) : Tensor();
  facts.columns = table.columns;
  facts.categories = table.categories;
  if (const auto words = table.categories.find(config.label); words != table.categories.end())
    facts.classes = words->second;
  require<DataError>(!table.columns.empty(), train.string(), ": there is no column beside the label");
  if (weighted) {
    const Dataset<3> all = data::from_tensor_slices(table.features, table.label, weights);
    if (config.test.empty()) return divided(all, config, train.string());
    CsvTable others = read(test);
    const Tensor of_others = take_weights(others, config.sample_weight, test.string());
    return {split_of(all, train.string()),
            split_of(data::from_tensor_slices(others.features, others.label, of_others), test.string())};
  }
  const Dataset<2> all = data::from_tensor_slices(table.features, table.label);
  if (config.test.empty()) return divided(all, config, train.string());
  const CsvTable others = read(test);
  return {split_of(all, train.string()),
          split_of(data::from_tensor_slices(others.features, others.label), test.string())};
}

/// The end of the text is for testing. Characters are those of the whole text, unless a run has told them.
Data load_text(const DataConfig& config, std::optional<Vocabulary> known) {
  const std::filesystem::path file = config.directory / config.text;
  const std::string source = "text " + file.string(), text = read_text(file);
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
  require<DataError>(!facts.of_classes || train[1].shape.rank() == 0, "the labels are ", train[1],
                     "; expected one class for each example");
  Spec input{train[0].dtype == i32 ? i32 : f32, train[0].shape};
  input.shape.insert(0, any_size);
  facts.input = input;
  return {std::move(splits.train), std::move(splits.test), input, {}, std::move(facts)};
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

std::string to_json(const DataFacts& facts) {
  std::vector<std::int64_t> example;
  for (int i = 1; i < facts.input.shape.rank(); ++i) example.push_back(facts.input.shape[i]);
  const nlohmann::json json{
      {"example", example},       {"is_tokens", facts.input.dtype == i32}, {"classes", facts.classes},
      {"columns", facts.columns}, {"categories", facts.categories},        {"of_classes", facts.of_classes}};
  // Names of files need not be UTF-8.
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
}

DataFacts read_facts(const std::filesystem::path& file) {
  try {
    const auto json = nlohmann::json::parse(read_text(file));
    DataFacts facts;
    facts.input = {json.at("is_tokens").get<bool>() ? i32 : f32, {any_size}};
    for (const std::int64_t size : json.at("example").get<std::vector<std::int64_t>>()) {
      require<DataError>(size >= 0, file.string(), ": a size of an example is ", size);
      facts.input.shape.push_back(size);
    }
    json.at("classes").get_to(facts.classes);
    json.at("columns").get_to(facts.columns);
    json.at("categories").get_to(facts.categories);
    json.at("of_classes").get_to(facts.of_classes);
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
                     .categories = facts.categories,
                     .columns = facts.columns};
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

Tensor as_labels(const Tensor& y, const std::string& place) {
  const Tensor labels = as_features(y, place);
  if (is_floating(labels.dtype())) return labels;
  const bool column = labels.shape().rank() == 2 && labels.shape()[1] == 1;
  return cast(column ? squeeze(labels, {1}) : labels, i32);
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
/// Images are decoded while the model computes.
template <std::size_t N> Dataset<N> made_ahead(const Dataset<N>& made, const DataConfig& config) {
  return config.kind == "images" ? made.prefetch() : made;
}

}  // namespace

Dataset<2> batches(const Dataset<2>& raw, const DataConfig& config, std::int64_t batch_size) {
  if (config.kind == "text") return raw.batch(batch_size);
  const bool single = is_single(raw.element_spec()[1]);
  const Dataset<2> made = raw.batch(batch_size).map([config, single](Tensor x, Tensor y) {
    return std::pair{prepared(x, config), single ? expand_dims(y, -1) : y};
  });
  return made_ahead(made, config);
}

Dataset<3> batches(const Dataset<3>& raw, const DataConfig& config, std::int64_t batch_size) {
  const bool single = is_single(raw.element_spec()[1]);
  const Dataset<3> made = raw.batch(batch_size).map([config, single](Tensor x, Tensor y, Tensor weight) {
    return std::tuple{prepared(x, config), single ? expand_dims(y, -1) : y, weight};
  });
  return made_ahead(made, config);
}

}  // namespace gradus::command
