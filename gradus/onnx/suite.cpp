#include "gradus/onnx/suite.h"
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include "gradus/base/input_file.h"
#include "gradus/formats/json.h"
#include "gradus/onnx/external_data.h"
#include "gradus/onnx/model.h"
#include "gradus/onnx/model_file.h"
#include "gradus/ops/elementwise.h"

namespace gradus::onnx {
namespace {

namespace fs = std::filesystem;

struct Tolerance {
  double relative = 1e-3, absolute = 1e-7;
};

Tolerance tolerance_of(const fs::path& directory) {
  Tolerance tolerance;
  const fs::path file = directory / "data.json";
  if (!fs::exists(file)) return tolerance;
  const nlohmann::json json = parse_json(read_text_file(file), file.string());
  require<DataError>(json.is_object(), "data.json is no JSON object");
  const auto take = [&](const char* key, double& place) {
    if (!json.contains(key)) return;
    require<DataError>(json[key].is_number(), "data.json: ", key, " is no number");
    place = json[key].get<double>();
  };
  take("rtol", tolerance.relative);
  take("atol", tolerance.absolute);
  return tolerance;
}

/// The tensors of word_0.pb, word_1.pb ...
std::vector<NamedTensor> read_tensors(const fs::path& data_set, const char* word) {
  std::vector<NamedTensor> tensors;
  for (int k = 0;; ++k) {
    const fs::path file = data_set / text(word, "_", k, ".pb");
    if (!fs::exists(file)) return tensors;
    tensors.push_back(parse_tensor(read_whole_file(file), file.filename().string()));
  }
}

bool agree(double got, double want, const Tolerance& tolerance) {
  if (got == want || (std::isnan(got) && std::isnan(want))) return true;
  return std::isfinite(want) && std::fabs(got - want) <= tolerance.absolute + tolerance.relative * std::fabs(want);
}

void compare_values(const Tensor& got, const Tensor& want, const Tolerance& tolerance, const std::string& what) {
  const Tensor got_wide = cast(got, f64), want_wide = cast(want, f64);
  const auto left = got_wide.span<double>(), right = want_wide.span<double>();
  std::size_t wrong = 0, first = 0;
  for (std::size_t i = 0; i < left.size(); ++i)
    if (!agree(left[i], right[i], tolerance) && wrong++ == 0) first = i;
  require<DataError>(wrong == 0, what, ": ", wrong, " of ", left.size(), " elements differ; element ", first, " is ",
                     left.empty() ? 0 : left[first], ", expected ", left.empty() ? 0 : right[first]);
}

void compare(const Tensor& got, const Tensor& want, Tolerance tolerance, const std::string& what) {
  require<DataError>(got.spec() == want.spec(), what, " is ", got.spec(), ", expected ", want.spec());
  if (want.dtype() == bf16) tolerance.relative = std::max(tolerance.relative, std::ldexp(1.0, -6));
  compare_values(got, want, tolerance, what);
}

void run_data_set(const Model& model, const fs::path& data_set, const Tolerance& tolerance) {
  const std::string name = data_set.filename().string();
  Tensors inputs;
  for (const NamedTensor& each : read_tensors(data_set, "input")) inputs.push_back(each.value);
  const std::vector<NamedTensor> wanted = read_tensors(data_set, "output");
  const Tensors got = model(inputs);
  require<DataError>(wanted.size() <= got.size(), name, " has ", wanted.size(), " outputs, the model ", got.size());
  for (std::size_t k = 0; k < wanted.size(); ++k)
    compare(got[k], wanted[k].value, tolerance, text(name, ", output ", k, " `", model.outputs()[k].name, "`"));
}

std::vector<fs::path> data_sets_of(const fs::path& directory) {
  std::vector<fs::path> sets;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory))
    if (entry.is_directory() && entry.path().filename().string().starts_with("test_data_set_"))
      sets.push_back(entry.path());
  std::ranges::sort(sets);
  return sets;
}

}  // namespace

Verdict run_case(const fs::path& directory) {
  using Outcome = Verdict::Outcome;
  try {
    const Tolerance tolerance = tolerance_of(directory);
    const Model model = load(directory / "model.onnx");
    const std::vector<fs::path> sets = data_sets_of(directory);
    require<DataError>(!sets.empty(), "there is no test_data_set");
    // The processor computes the first run of small programs for a device: the second is the device's own.
    const int runs = default_device().kind == DeviceKind::cpu ? 1 : 2;
    for (const fs::path& data_set : sets)
      for (int run = 0; run < runs; ++run) run_data_set(model, data_set, tolerance);
    return {};
  } catch (const Unsupported& error) {
    return {Outcome::unsupported, error.what()};
  } catch (const std::exception& error) { return {Outcome::failed, error.what()}; }
}

std::vector<fs::path> find_cases(const std::vector<fs::path>& roots) {
  std::vector<fs::path> cases;
  for (const fs::path& root : roots) {
    if (!fs::is_directory(root) || fs::exists(root / "model.onnx")) {
      cases.push_back(root);
      continue;
    }
    std::vector<fs::path> found;
    std::error_code problem;
    for (fs::recursive_directory_iterator at(root, problem), end; !problem && at != end; at.increment(problem))
      if (at->path().filename() == "model.onnx") found.push_back(at->path().parent_path());
    require<Unavailable>(!problem, root.string(), ": cannot be read: ", problem.message());
    std::ranges::sort(found);
    cases.insert(cases.end(), found.begin(), found.end());
  }
  return cases;
}

}  // namespace gradus::onnx
