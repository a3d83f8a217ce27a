/// `gradus run`.
#include <iostream>
#include "apps/gradus/commands.h"
#include "apps/gradus/config.h"
#include "gradus/base/threads.h"
#include "gradus/formats/npy.h"
#include "gradus/onnx/model.h"

namespace gradus::command {
namespace {

/// "name=file.npy" -> the file's content, by name.
std::map<std::string, Tensor> read_inputs(const std::vector<std::string>& given) {
  std::map<std::string, Tensor> inputs;
  for (const std::string& each : given) {
    const std::size_t sign = each.find('=');
    require<ConfigError>(sign != std::string::npos && sign > 0, "--input ", each, ": expected NAME=FILE.npy");
    const bool is_new = inputs.emplace(each.substr(0, sign), load_npy(each.substr(sign + 1))).second;
    require<ConfigError>(is_new, "--input ", each, ": that input is given twice");
  }
  return inputs;
}

/// Names of values may hold letters that names of files may not, or that a terminal would obey, and be longer.
std::string file_name_of(const std::string& output) {
  constexpr std::size_t longest = 200;  // bytes; a number and an ending follow
  std::string name = printable(output, true);
  for (char& c : name)
    if (c == '/' || c == '\\' || c == ':') c = '_';
  if (name.size() > longest) {
    std::size_t end = longest;
    while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xc0) == 0x80) --end;  // no part of a character
    name.resize(end);
  }
  return name.empty() || name.front() == '.' ? "_" + name : name;
}

/// The file of each output: "<output>.npy" where that can be, and where two would be one the other is numbered.
std::map<std::string, std::string> files_of(const std::map<std::string, Tensor>& results) {
  std::map<std::string, std::string> files;
  for (const auto& [name, value] : results) {
    std::string file = file_name_of(name);
    for (int i = 2; file != name && (results.contains(file) || files.contains(file)); ++i)
      file = text(file_name_of(name), "_", i);
    files.emplace(file, name);
  }
  return files;
}

}  // namespace

int run_model(const RunArguments& arguments) {
  if (arguments.threads) set_num_threads(static_cast<int>(*arguments.threads));
  const onnx::Model model = onnx::load(arguments.model);
  const std::map<std::string, Tensor> results = model(read_inputs(arguments.inputs));
  std::error_code problem;
  std::filesystem::create_directories(arguments.output, problem);
  require<Unavailable>(!problem, "run: ", arguments.output.string(), ": cannot be made: ", problem.message());
  for (const auto& [stem, name] : files_of(results)) {
    const std::filesystem::path file = arguments.output / (stem + ".npy");
    save_npy(file, results.at(name));
    std::cout << printable(name, true) << ' ' << results.at(name).spec() << ' ' << file.string() << '\n';
  }
  return ok;
}

}  // namespace gradus::command
