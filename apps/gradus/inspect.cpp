/// `gradus inspect`. What there is to say is gathered as JSON, and printed so or as text.
#include <algorithm>
#include <iomanip>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include "apps/gradus/commands.h"
#include "apps/gradus/experiment.h"
#include "apps/gradus/run_directory.h"
#include "gradus/base/input_file.h"
#include "gradus/base/lines.h"
#include "gradus/formats/json.h"
#include "gradus/formats/safetensors.h"
#include "gradus/onnx/model_file.h"
#include "gradus/train/checkpoint_directory.h"

namespace gradus::command {
namespace {
namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

Json sizes_of(const Shape& shape) {
  Json sizes = Json::array();
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape[i] == any_size) sizes.push_back(nullptr);
    else sizes.push_back(shape[i]);
  }
  return sizes;
}

Json row_of(const std::string& name, const Spec& spec) {
  return {{"name", name}, {"dtype", text(spec.dtype)}, {"shape", sizes_of(spec.shape)}, {"bytes", bytes_of(spec)}};
}

/// Arrays of a file, and their bytes in all.
Json with_arrays(Json said, const std::vector<std::pair<std::string, Spec>>& arrays) {
  std::int64_t bytes = 0, elements = 0;
  Json rows = Json::array();
  for (const auto& [name, spec] : arrays) {
    rows.push_back(row_of(name, spec));
    bytes += bytes_of(spec);
    elements += spec.shape.size();
  }
  said["elements"] = elements;
  said["bytes"] = bytes;
  said["arrays"] = std::move(rows);
  return said;
}

Json inspect_arrays(const fs::path& file) {
  std::vector<std::pair<std::string, Spec>> arrays;
  const std::string ending = file.extension().string();
  if (ending == ".npy") arrays.emplace_back("array", load_npy(file).spec());
  else if (ending == ".npz")
    for (const auto& [name, value] : load_npz(file)) arrays.emplace_back(name, value.spec());
  else
    for (const NamedArray& array : read_safetensors(file)) arrays.emplace_back(array.name, array.spec);
  return with_arrays({{"kind", "arrays"}, {"file", file.string()}}, arrays);
}

Json inspect_checkpoints(const fs::path& directory) {
  std::vector<std::string> damaged;
  const auto contents = CheckpointDirectory({.directory = directory}).read_newest(damaged);
  require<DataError>(contents.has_value(), directory.string(), ": there is no whole checkpoint in it",
                     damaged.empty() ? "" : "; " + damaged[0]);
  std::vector<std::pair<std::string, Spec>> arrays;
  for (const NamedArray& array : contents->arrays) arrays.emplace_back(array.name, array.spec);
  return with_arrays({{"kind", "checkpoint"},
                      {"directory", directory.string()},
                      {"step", contents->step},
                      {"epoch", contents->position.epoch},
                      {"batch", contents->position.index},
                      {"damaged", damaged}},
                     arrays);
}

Json port_of(const onnx::ValueInfo& value) {
  Json port{{"name", value.name}, {"dtype", text(value.dtype)}};
  port["shape"] = value.shape ? sizes_of(*value.shape) : Json(nullptr);
  return port;
}

Json inspect_onnx(const fs::path& file, bool graph) {
  const onnx::ModelFile model = onnx::read_model(file);
  Json said{{"kind", "onnx"}, {"file", file.string()}, {"ir_version", model.ir_version}};
  for (const onnx::OperatorSet& opset : model.opsets)
    said["opset " + (opset.domain.empty() ? std::string("ai.onnx") : opset.domain)] = opset.version;
  said["inputs"] = Json::array();
  said["outputs"] = Json::array();
  for (const auto& input : model.graph.inputs) said["inputs"].push_back(port_of(input));
  for (const auto& output : model.graph.outputs) said["outputs"].push_back(port_of(output));
  std::map<std::string, int> counts;
  for (const onnx::NodeDefinition& node : model.graph.nodes) ++counts[node.op];
  said["nodes"] = model.graph.nodes.size();
  said["ops"] = Json::array();
  for (const auto& [op, count] : counts) said["ops"].push_back({{"op", op}, {"count", count}});
  if (graph) {
    said["graph"] = Json::array();
    for (const onnx::NodeDefinition& node : model.graph.nodes)
      said["graph"].push_back(
          {{"op", node.op}, {"name", node.name}, {"inputs", node.inputs}, {"outputs", node.outputs}});
  }
  std::vector<std::pair<std::string, Spec>> arrays;
  for (const onnx::NamedTensor& initializer : model.graph.initializers)
    arrays.emplace_back(initializer.name, initializer.value.spec());
  return with_arrays(std::move(said), arrays);
}

/// The graph of a prediction that the compiler receives, one batch size for all.
std::string graph_of(const Sequential& model, const Spec& input) {
  const auto scores =
      function([&](Tensor x) { return model(x, inference); }, {.name = "predict", .input_signature = {input}});
  Spec one = input;
  one.shape.set(0, 1);
  (void)scores(zeros(one.shape, one.dtype));
  return scores.explain().graph();
}

void add_model(Json& said, const TrainConfig& config, const DataFacts& facts, std::int64_t outputs, bool graph) {
  const Spec& input = facts.input;
  Sequential model = make_model(config, outputs, facts);
  model.build(input);
  said["input"] = {{"dtype", text(input.dtype)}, {"shape", sizes_of(input.shape)}};
  said["parameters"] = model.variables().parameters();
  said["summary"] = model.summary();
  if (graph) said["graph"] = graph_of(model, input);
}

Json inspect_run(const fs::path& directory, bool graph) {
  const RunDirectory run(directory);
  const TrainConfig config = read_config(run.config());
  Json said{{"kind", "run"}, {"directory", directory.string()}, {"data", config.data.kind}};
  std::error_code none;
  if (fs::exists(run.data(), none)) {
    const DataFacts facts = read_facts(run.data());
    const std::int64_t outputs = fs::exists(run.vocabulary(), none) ? Vocabulary::read(run.vocabulary()).size()
                                                                    : static_cast<std::int64_t>(facts.classes.size());
    add_model(said, config, facts, outputs, graph);
  }
  if (fs::exists(run.metrics(), none)) {
    const std::string metrics = read_text_file(run.metrics());
    for (std::string_view rest = metrics; !rest.empty();)
      if (const auto epoch = json_if_any<Json>(take_line(rest)); epoch.is_object()) said["last epoch"] = epoch;
  }
  if (fs::exists(run.checkpoints(), none)) {
    const Json checkpoint = inspect_checkpoints(run.checkpoints());
    for (const char* key : {"step", "epoch", "batch"}) said["checkpoint"][key] = checkpoint[key];
  }
  said["is trained"] = fs::exists(run.weights(), none);
  return said;
}

Json inspect_config(const fs::path& file, bool graph) {
  const TrainConfig config = read_config(file);
  const Data data = load_data(config.data);
  Json said{{"kind", "configuration"},
            {"file", file.string()},
            {"training examples", data.train.examples},
            {"test examples", data.test.examples}};
  add_model(said, config, data.facts, data.outputs(), graph);
  return said;
}

Json inspect_directory(const fs::path& path, bool graph) {
  std::error_code none;
  if (fs::exists(path / "config.toml", none)) return inspect_run(path, graph);
  return inspect_checkpoints(path);
}

Json inspect_path(const fs::path& path, bool graph) {
  std::error_code none;
  if (fs::is_directory(path, none)) return inspect_directory(path, graph);
  require<Unavailable>(fs::exists(path, none), "inspect: ", path.string(), ": there is no such file");
  const std::string ending = path.extension().string();
  if (ending == ".onnx") return inspect_onnx(path, graph);
  if (ending == ".toml") return inspect_config(path, graph);
  require(ending == ".safetensors" || ending == ".npz" || ending == ".npy", "inspect: ", path.string(),
          ": expected the directory of a run or of checkpoints, or a file .toml, .onnx, .safetensors, .npz or .npy");
  return inspect_arrays(path);
}

/// A value on one line.
std::string line_of(const Json& value) {
  if (value.is_string()) return printable(value.get<std::string>(), true);
  if (value.is_null()) return "any";
  if (!value.is_object()) return printable(value.dump(-1, ' ', false, Json::error_handler_t::replace), true);
  std::string line;
  for (const auto& [key, each] : value.items())
    line += (line.empty() ? "" : ", ") + printable(key, true) + ' ' + line_of(each);
  return line;
}

/// Rows of equal keys, aligned.
void print_table(const Json& rows) {
  std::map<std::string, std::size_t> widths;
  for (const Json& row : rows)
    for (const auto& [key, value] : row.items()) widths[key] = std::max(widths[key], line_of(value).size());
  for (const Json& row : rows) {
    for (const auto& [key, value] : row.items())
      std::cout << "  " << std::left << std::setw(static_cast<int>(widths[key])) << line_of(value);
    std::cout << '\n';
  }
}

void print(const Json& said) {
  for (const auto& [key, value] : said.items()) {
    const bool is_table = value.is_array() && !value.empty() && value[0].is_object();
    const bool is_block = value.is_string() && value.get<std::string>().find('\n') != std::string::npos;
    if (value.is_array() && value.empty()) continue;
    std::cout << printable(key, true) << ": ";
    if (is_table) {
      std::cout << '\n';
      print_table(value);
    } else if (is_block) {
      std::cout << '\n' << printable(value.get<std::string>()) << '\n';
    } else {
      std::cout << line_of(value) << '\n';
    }
  }
}

}  // namespace

int inspect(const InspectArguments& arguments) {
  const Json said = inspect_path(arguments.path, arguments.graph);
  if (arguments.json) std::cout << said.dump(-1, ' ', false, Json::error_handler_t::replace) << '\n';
  else print(said);
  return ok;
}

}  // namespace gradus::command
