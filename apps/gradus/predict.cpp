/// `gradus predict`.
#include <algorithm>
#include <charconv>
#include <functional>
#include <iostream>
#include "apps/gradus/commands.h"
#include "apps/gradus/decimals.h"
#include "apps/gradus/findings.h"
#include "apps/gradus/model.h"
#include "apps/gradus/path_kinds.h"
#include "apps/gradus/ranks.h"
#include "gradus/base/rooms.h"
#include "gradus/formats/atomic_file.h"

namespace gradus::command {
namespace {
namespace fs = std::filesystem;

/// The examples to predict, as they lie in their files, a part of them at a time.
struct Questions {
  std::int64_t count;
  std::function<Tensor(std::int64_t begin, std::int64_t end)> rows;
  std::string key = "row";
  std::vector<std::string> names = {};  // the name of each line of the answer; empty: 0, 1, ...
};
constexpr std::int64_t part = 256;

/// Words stand in tables of answers, in quotes where they have to.
std::string cell(const std::string& word) {
  if (word.find_first_of(",\"\n\r") == std::string::npos) return word;
  std::string out = "\"";
  for (const char c : word) out += c == '"' ? "\"\"" : std::string(1, c);
  return out + '"';
}

/// Pictures below a folder, in the order of their names.
std::vector<fs::path> pictures_below(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code problem;
  for (fs::recursive_directory_iterator at(folder, problem), end; !problem && at != end; at.increment(problem))
    if (at->is_regular_file(problem) && !at->path().filename().string().starts_with(".")) files.push_back(at->path());
  require<Unavailable>(!problem, "predict: ", folder.string(), ": cannot be read: ", problem.message());
  require<Unavailable>(!files.empty(), "predict: ", folder.string(), ": there are no files in it");
  std::ranges::sort(files);
  return files;
}

Questions of_images(const fs::path& input, const DataConfig& config) {
  std::error_code none;
  const auto files = fs::is_directory(input, none) ? pictures_below(input) : std::vector<fs::path>{input};
  Questions questions{.count = std::ssize(files), .rows = {}, .key = "file"};
  for (const fs::path& file : files) questions.names.push_back(file.string());
  questions.rows = [files, config](std::int64_t begin, std::int64_t end) {
    const Shape shape{end - begin, config.height, config.width, config.channels};
    Ref<Buffer> pixels = Buffer::allocate(shape.size(), "images");
    const std::int64_t bytes = shape.size() / (end - begin);
    for (std::int64_t i = begin; i < end; ++i)
      resize_image(load_image(files[static_cast<std::size_t>(i)], static_cast<int>(config.channels)), config.height,
                   config.width, pixels->data<std::uint8_t>() + (i - begin) * bytes);
    return Tensor::of_buffer({u8, shape}, std::move(pixels));
  };
  return questions;
}

Questions of_tensor(const Tensor& x, const fs::path& input) {
  require<DataError>(x.shape().rank() > 0, input.string(), ": this is a scalar; expected one row for each example");
  return {.count = x.shape()[0], .rows = [x](std::int64_t begin, std::int64_t end) { return x.rows(begin, end); }};
}

Tensor features_of_table(const fs::path& input, const DataConfig& config, const DataFacts& facts) {
  CsvOptions options = csv_options(config, facts);
  options.label.clear();
  options.categories.erase(config.label);
  return load_csv(input, options).features;
}

Tensor array_of(const fs::path& input, const std::string& array) {
  const std::string ending = input.extension().string();
  if (ending == ".npy") return as_features(load_npy(input), input.string());
  if (ending == ".npz") return as_features(array_named(array, load_npz(input), input.string()), input.string());
  const IdxArray found = read_idx(input);
  return Tensor::of_buffer({found.dtype, Shape(found.dims)}, found.data);
}

Questions read_questions(const PredictArguments& arguments, const DataConfig& config, const DataFacts& facts) {
  const fs::path& input = arguments.input;
  if (config.kind == "images") return of_images(input, config);
  if (config.kind == "csv") return of_tensor(features_of_table(input, config, facts), input);
  return of_tensor(array_of(input, arguments.array), input);
}

/// Scores or numbers, f32 [examples, ...].
Tensor answers_to(const Questions& questions, const Module& model, const TrainConfig& config, const Spec& input,
                  const std::string& source, const std::optional<Strategy>& strategy) {
  Tensors parts;
  for (std::int64_t begin = 0; begin == 0 || begin < questions.count; begin += part) {
    const Tensor x = prepared(questions.rows(begin, std::min(begin + part, questions.count)), config.data);
    Spec given = x.spec();
    given.shape.set(0, any_size);
    require<DataError>(given == input, source, ": the model was trained on ", input, ", this is ", given);
    parts.push_back(cast(strategy ? predict(model, x, {.strategy = strategy}) : model(x, inference), f32));
    parts.back().observed();  // of one part no more than its answers stays in memory
  }
  return concat(parts);
}

/// For classes the likeliest and its probability, for numbers all of them.
std::string table_of(const Questions& questions, const Tensor& answers, const DataFacts& facts) {
  const bool of_classes = facts.of_classes;
  const std::int64_t rows = answers.shape()[0];
  const auto width = static_cast<std::size_t>(rows > 0 ? answers.shape().size() / rows : 0);
  std::string out = questions.key + (of_classes ? ",class,probability" : "");
  for (std::size_t i = 0; !of_classes && i < width; ++i) out += width == 1 ? ",prediction" : text(",prediction_", i);
  out += '\n';
  for (std::size_t row = 0; std::cmp_less(row, rows); ++row) {
    const auto scores = answers.span<float>().subspan(row * width, width);
    out += questions.names.empty() ? std::to_string(row) : cell(questions.names[row]);
    if (of_classes) {
      const std::vector<double> shares = probabilities(scores);
      const auto best = std::ranges::max_element(shares);
      out += ',' + cell(class_name(facts.classes, best - shares.begin())) + ',' + shortest(*best);
    } else {
      for (const float number : scores) out += ',' + shortest(static_cast<double>(number));
    }
    out += '\n';
  }
  return out;
}

}  // namespace

int predict_examples(const PredictArguments& arguments) {
  const Cluster cluster = workers_for("predict");
  require_run("predict", arguments.run);
  TrainConfig config = read_config(arguments.run / "config.toml");
  require<ConfigError>(config.data.kind != "text", arguments.run.string(),
                       ": this run is of a text; gradus sample goes on with one");
  if (const std::int64_t threads = arguments.threads.value_or(config.threads))
    set_num_threads(static_cast<int>(threads));
  const std::optional<Strategy> strategy = strategy_of(config, cluster);
  const DataFacts facts = read_facts(arguments.run / "data.json");
  const Questions questions = read_questions(arguments, config.data, facts);
  Sequential model = make_model(config, static_cast<std::int64_t>(facts.classes.size()), facts);
  model.build(facts.input);
  load_safetensors(arguments.run / "weights.safetensors", model);
  const Tensor answers = answers_to(questions, model, config, facts.input, arguments.input.string(), strategy);
  if (!cluster.is_chief()) return ok;
  if (arguments.output && arguments.output->extension() == ".npy") {
    save_npy(*arguments.output, facts.of_classes ? softmax(answers) : answers);
    return ok;
  }
  require<DataError>(answers.shape().rank() == 2, arguments.run.string(), ": a prediction is ", answers.spec(),
                     ", which is no table; take --output FILE.npy");
  const std::string table = table_of(questions, answers, facts);
  if (!arguments.output) {
    std::cout << table;
    return ok;
  }
  AtomicFile file(*arguments.output);
  file.write(table);
  file.commit();
  return ok;
}

}  // namespace gradus::command
