#include "gradus/function/export_object.h"
#include <algorithm>
#include <map>
#include <optional>
#include "gradus/backend/c_words.h"
#include "gradus/backend/object.h"
#include "gradus/function/function.h"
#include "gradus/function/pending_file.h"
#include "gradus/function/resident.h"
#include "gradus/ops/random_state.h"

namespace gradus {
namespace {

constexpr std::int64_t least_in_file = 4096;                    // smaller ones are part of the object
constexpr std::int64_t most_captured = std::int64_t{64} << 20;  // bytes of one tensor

/// A prefix of letters makes any name free.
std::string suggested_for(const std::string& name) { return "step_" + name.substr(name.find_first_not_of('_')); }

class StepOfSegment {
 public:
  StepOfSegment(const Segment& segment, Graph graph, const std::string& title, bool has_weights_file)
      : segment_(segment), title_(title), has_weights_file_(has_weights_file) {
    step_.graph = without_devices(std::move(graph), title, "export_object");
    for (std::size_t i = 0; i < segment.cells.size(); ++i) order_.push_back(i);
    std::ranges::sort(order_, {}, [&](std::size_t i) { return segment.cells[i].cell->id; });
    fields_.resize(order_.size());
    for (std::size_t k = 0; k < order_.size(); ++k) {
      VariableCell& cell = *segment.cells[order_[k]].cell;
      fields_[order_[k]] = k;
      step_.fields.push_back({cell.name, plain(cell.spec), resident(cell.read())});
    }
    for (const Source& source : segment.sources) step_.inputs.push_back(input_of(source));
    for (const Segment::Assignment& a : segment.assignments)
      step_.assigned.emplace_back(fields_[a.cell], static_cast<int>(a.output));
    for (const Segment::Result& result : segment.results)
      if (result.output >= 0) step_.results.push_back({result.output, plain(result.spec)});
  }
  ObjectStep take() { return std::move(step_); }

 private:
  static Spec plain(Spec spec) {
    spec.device = {};
    return spec;
  }
  ObjectStep::Input input_of(const Source& source) {
    using Kind = ObjectStep::Input::Kind;
    const auto index = static_cast<std::size_t>(source.index);
    switch (source.kind) {
      case Source::Kind::argument: return {.kind = Kind::argument, .index = index};
      case Source::Kind::cell: return {.kind = Kind::field, .index = fields_[index]};
      case Source::Kind::call_key: return {.kind = Kind::key};
      default: break;
    }
    const Tensor& capture = segment_.captures[index];
    if (has_weights_file_ && bytes_of(capture.spec()) > least_in_file) return field_of(capture);
    require<ResourceExhausted>(
        bytes_of(capture.spec()) <= most_captured, title_, ": export_object: a captured tensor ", described(capture),
        ": an object file takes ", most_captured,
        " bytes at most of each: let weights go to a file of their own ({.weights = FILE}, gradus compile "
        "--weights FILE), hold it in a Variable, or give it as an argument");
    return {.kind = Kind::constant, .constant = resident(capture)};
  }

  /// Its spec, its bytes, and its readers.
  std::string described(const Tensor& capture) const {
    for (const auto& [number, what] : segment_.large_captures)
      if (number == capture.node()->sequence) return what;
    return text(capture.spec());
  }

  /// A part of the state, once for each tensor.
  ObjectStep::Input field_of(const Tensor& capture) {
    const auto [place, is_new] = captured_.try_emplace(capture.node().get(), step_.fields.size());
    if (is_new)
      step_.fields.push_back({.name = text("captured_", captured_.size() - 1),
                              .spec = plain(capture.spec()),
                              .now = resident(capture),
                              .is_constant = true});
    return {.kind = ObjectStep::Input::Kind::field, .index = place->second};
  }

  const Segment& segment_;
  const std::string& title_;
  const bool has_weights_file_;
  std::map<const Node*, std::size_t> captured_;  // their fields
  ObjectStep step_;
  std::vector<std::size_t> order_, fields_;  // cells by age; of each cell its field
};

}  // namespace

std::string object_function_name(const std::filesystem::path& stem) {
  std::string name = stem.filename().string();
  const auto is_right = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  require(!name.empty() && std::ranges::all_of(name, is_right) && !(name.front() >= '0' && name.front() <= '9'),
          "export_object: the stem ", stem.string(),
          " names the functions of the object, so its last part has to be a ",
          "name in C, of letters, digits and _, such as train_step");
  require(!is_function_of_c(name), "export_object: the stem ", stem.string(),
          " names the functions of the object, and `", name,
          "` has a meaning in C or C++ already, as a word of the language, a function of the C library or a name ",
          "reserved for them: choose another, such as ", suggested_for(name));
  return name;
}

void detail::refuse_specs(std::string_view what, std::size_t given, const std::vector<bool>& taken) {
  std::string numbers;
  for (std::size_t n = 0; n < taken.size(); ++n)
    if (taken[n]) numbers += text(numbers.empty() ? "" : " or ", n);
  const std::string specs =
      given == 0 ? "no spec is given" : text(given, given == 1 ? " spec is" : " specs are", " given");
  if (numbers.empty())
    throw InvalidArgument(text(what, ": ", specs, ", and the step takes arguments that are no Tensors, or more than ",
                               most_exported_arguments,
                               ": make each a Tensor, or the last a std::vector of them, and capture what is none"));
  throw InvalidArgument(text(what, ": ", specs, ", and the step takes ", numbers,
                             numbers == "1" ? " Tensor" : " Tensors",
                             ": give a spec for each, such as {{f32, {64, 16}}, {i32, {64}}} for two, or give the ",
                             "function an input_signature"));
}

ObjectFiles write_object_files(const FunctionOptions& function, const std::string& title,
                               const std::filesystem::path& stem, const std::vector<Spec>& arguments,
                               const ObjectOptions& options, Draft draft) {
  const std::string name = object_function_name(stem);
  auto [segment, graph] = std::move(draft).take_leaf(title, "export_object");
  ObjectStep step = StepOfSegment(*segment, std::move(graph), title, !options.weights.empty()).take();
  step.name = name;
  step.arguments = arguments;
  step.disable = function.disable;
  step.max_bytes = static_cast<std::int64_t>(function.max_bytes);
  step.random_state = random_state();
  step.instruction_set = options.instruction_set;
  step.target = options.target;
  step.weights_file = options.weights.filename().string();
  const ObjectText made = make_object(step);
  const ObjectFiles files{stem.string() + ".o", stem.string() + ".h", options.weights};
  PendingFile object("export_object", files.object, made.object), header("export_object", files.header, made.header);
  std::optional<PendingFile> weights;
  if (!files.weights.empty()) weights.emplace("export_object", files.weights, made.weights);
  object.put_in_place();
  header.put_in_place();
  if (weights) weights->put_in_place();
  return files;
}

}  // namespace gradus
