#include "apps/gradus/data_checksum.h"
#include <algorithm>
#include <charconv>
#include <cstring>
#include <nlohmann/json.hpp>
#include "apps/gradus/data.h"
#include "gradus/base/hash.h"
#include "gradus/base/input_file.h"
#include "gradus/base/rooms.h"

namespace gradus::command {
namespace {
namespace fs = std::filesystem;

constexpr std::int64_t rows_at_once = 256;

std::uint64_t hash_of_bytes(std::span<const std::byte> bytes, std::uint64_t seed) {
  std::uint64_t hash = mix(seed, bytes.size());
  for (std::size_t at = 0; at < bytes.size(); at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, std::min<std::size_t>(8, bytes.size() - at));
    hash = mix(hash, word);
  }
  return hash;
}

void add(RowsChecksum& rows, std::uint64_t row) {
  rows.in_order = mix(rows.in_order, row);
  rows.any_order += mix(row, 1);
}

void add(SplitChecksum& split, std::uint64_t features, std::uint64_t labels) {
  add(split.features, features);
  add(split.labels, labels);
  add(split.both, mix(features, labels));
  ++split.examples;
}

/// Row `i` of a batch, hashed on top of `seed`.
std::uint64_t row_of(const Tensor& batch, std::int64_t i, std::uint64_t seed) {
  const auto bytes = static_cast<std::size_t>(batch.bytes() / static_cast<std::size_t>(batch.shape()[0]));
  const auto* all = static_cast<const std::byte*>(batch.host());
  return hash_of_bytes({all + static_cast<std::size_t>(i) * bytes, bytes}, seed);
}

SplitChecksum checksum_of(const Split& split) {
  SplitChecksum sum;
  const auto add_rows = [&](const Tensor& x, const Tensor& y, const Tensor* weights) {
    for (std::int64_t i = 0; i < x.shape()[0]; ++i)
      add(sum, row_of(x, i, 1), row_of(y, i, weights ? row_of(*weights, i, 3) : 2));
  };
  if (split.weighted)
    for (auto [x, y, weights] : split.weighted->batch(rows_at_once)) add_rows(x, y, &weights);
  else
    for (auto [x, y] : split.raw.batch(rows_at_once)) add_rows(x, y, nullptr);
  return sum;
}

/// As images_from_directory takes them: class after class, files by their names.
SplitChecksum checksum_of_images(const fs::path& folder) {
  SplitChecksum sum;
  for (const std::string& name : data::class_names(folder)) {
    std::vector<fs::path> files;
    std::error_code problem;
    for (fs::directory_iterator at(folder / name, problem), end; !problem && at != end; at.increment(problem))
      if (at->is_regular_file(problem) && !at->path().filename().string().starts_with(".")) files.push_back(at->path());
    require<Unavailable>(!problem, (folder / name).string(), ": cannot be read: ", problem.message());
    std::ranges::sort(files);
    for (const fs::path& file : files)
      add(sum, hash_of_bytes(read_whole_file(file), 1), hash_of(std::string_view(name)));
  }
  return sum;
}

std::string example_of(const Split& split) {
  std::string out;
  for (const Spec& spec : split.raw.element_spec()) out += text(out.empty() ? "" : ", ", spec);
  return out + (split.weighted ? ", weighted" : "");
}

std::string difference(std::string_view kind, const SplitChecksum& now, const SplitChecksum& then) {
  if (now == then) return {};
  if (now.examples != then.examples) return text(now.examples, ' ', kind, " examples, not ", then.examples);
  if (now.example != then.example) return text("a ", kind, " example is ", now.example, ", not ", then.example);
  if (now.both.any_order == then.both.any_order) return text("the ", kind, " examples stand in another order");
  if (now.features.any_order == then.features.any_order && now.labels.any_order == then.labels.any_order)
    return text("features and labels of the ", kind, " examples go together otherwise");
  if (now.features == then.features) return text("the ", kind, " examples have other labels");
  if (now.labels == then.labels) return text("the ", kind, " examples have other features");
  return text("the ", kind, " examples have other contents");
}

// JSON has no portable integers of 64 bits: they are written as text.

nlohmann::json to_json_value(const RowsChecksum& rows) {
  return {std::to_string(rows.in_order), std::to_string(rows.any_order)};
}
nlohmann::json to_json_value(const SplitChecksum& split) {
  return {{"examples", split.examples},
          {"example", split.example},
          {"features", to_json_value(split.features)},
          {"labels", to_json_value(split.labels)},
          {"both", to_json_value(split.both)}};
}

std::uint64_t number_from(const nlohmann::json& json) {
  const std::string& digits = json.get_ref<const std::string&>();
  std::uint64_t number = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return number;
}
RowsChecksum rows_from(const nlohmann::json& json) { return {number_from(json.at(0)), number_from(json.at(1))}; }
SplitChecksum split_from(const nlohmann::json& json) {
  return {json.at("examples").get<std::int64_t>(), json.at("example").get<std::string>(),
          rows_from(json.at("features")), rows_from(json.at("labels")), rows_from(json.at("both"))};
}

}  // namespace

DataChecksum checksum_of(const Data& data, const DataConfig& config) {
  DataChecksum sum;
  if (config.kind == "images") {
    sum.training = checksum_of_images(config.directory / config.train);
    if (!config.test.empty()) sum.testing = checksum_of_images(config.directory / config.test);
  } else {
    sum = {checksum_of(data.train), checksum_of(data.test)};
  }
  sum.training.example = example_of(data.train);
  sum.testing.example = example_of(data.test);
  return sum;
}

std::string difference(const DataChecksum& now, const DataChecksum& then) {
  const std::string training = difference("training", now.training, then.training),
                    testing = difference("test", now.testing, then.testing);
  return training + (training.empty() || testing.empty() ? "" : "; ") + testing;
}

nlohmann::json to_json_value(const DataChecksum& checksum) {
  return {{"training", to_json_value(checksum.training)}, {"testing", to_json_value(checksum.testing)}};
}
DataChecksum checksum_from(const nlohmann::json& json) {
  return {split_from(json.at("training")), split_from(json.at("testing"))};
}

}  // namespace gradus::command
