#include "gradus/function/export_object.h"
#include <algorithm>
#include <deque>
#include <map>
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

/// Names within every object.
bool is_of_objects(std::string_view name) {
  return name.starts_with("gradus_object_") || name.starts_with("gradus_tiles_") || name.starts_with("gradus_loops_");
}

/// A prefix of letters makes any name free.
std::string suggested_for(const std::string& name) { return "step_" + name.substr(name.find_first_not_of('_')); }

/// The steps of one object, and their state: the Variables that any of them reads or assigns, by age.
class StepsOfDrafts {
 public:
  StepsOfDrafts(const TracedSteps& traced, bool has_weights_file) : has_weights_file_(has_weights_file) {
    std::map<std::uint64_t, VariableCell*> by_age;
    for (const auto& step : traced)
      for (const UsedCell& used : step->segment->cells) by_age.emplace(used.cell->id, used.cell);
    for (const auto& [id, cell] : by_age) {
      fields_[cell] = all_.fields.size();
      all_.fields.push_back({cell->name, plain(cell->spec), resident(cell->read())});
    }
    for (const auto& step : traced) add(*step);
  }
  ObjectSteps take() { return std::move(all_); }

 private:
  static Spec plain(Spec spec) {
    spec.device = {};
    return spec;
  }

  void add(const TracedStep& traced) {
    const Segment& segment = *traced.segment;
    ObjectStep step;
    step.graph = without_devices(Graph(traced.graph), traced.title, "export_object");
    step.arguments = traced.arguments;
    step.disable = traced.options.disable;
    step.max_bytes = static_cast<std::int64_t>(traced.options.max_bytes);
    for (const Source& source : segment.sources) step.inputs.push_back(input_of(traced, source));
    for (const Segment::Assignment& a : segment.assignments)
      step.assigned.emplace_back(fields_.at(segment.cells[a.cell].cell), static_cast<int>(a.output));
    for (const Segment::Result& result : segment.results)
      if (result.output >= 0) step.results.push_back({result.output, plain(result.spec)});
    all_.steps.push_back(std::move(step));
  }

  ObjectStep::Input input_of(const TracedStep& traced, const Source& source) {
    using Kind = ObjectStep::Input::Kind;
    const auto index = static_cast<std::size_t>(source.index);
    switch (source.kind) {
      case Source::Kind::argument: return {.kind = Kind::argument, .index = index};
      case Source::Kind::cell: return {.kind = Kind::field, .index = fields_.at(traced.segment->cells[index].cell)};
      case Source::Kind::call_key: return {.kind = Kind::key};
      default: break;
    }
    const Tensor& capture = traced.segment->captures[index];
    if (has_weights_file_ && bytes_of(capture.spec()) > least_in_file) return field_of(capture);
    require<ResourceExhausted>(
        bytes_of(capture.spec()) <= most_captured, traced.title, ": export_object: a captured tensor ",
        described(*traced.segment, capture), ": an object file takes ", most_captured,
        " bytes at most of each: let weights go to a file of their own ({.weights = FILE}, gradus compile "
        "--weights FILE), hold it in a Variable, or give it as an argument");
    return {.kind = Kind::constant, .constant = resident(capture)};
  }

  /// Its spec, its bytes, and its readers.
  static std::string described(const Segment& segment, const Tensor& capture) {
    for (const auto& [number, what] : segment.large_captures)
      if (number == capture.node()->sequence) return what;
    return text(capture.spec());
  }

  /// A part of the state, once for each tensor.
  ObjectStep::Input field_of(const Tensor& capture) {
    const auto [place, is_new] = captured_.try_emplace(capture.node().get(), all_.fields.size());
    if (is_new)
      all_.fields.push_back({.name = text("captured_", captured_.size() - 1),
                             .spec = plain(capture.spec()),
                             .now = resident(capture),
                             .is_constant = true});
    return {.kind = ObjectStep::Input::Kind::field, .index = place->second};
  }

  const bool has_weights_file_;
  std::map<const VariableCell*, std::size_t> fields_;
  std::map<const Node*, std::size_t> captured_;  // their fields
  ObjectSteps all_;
};

bool is_of_c(const std::string& name) {
  const auto is_right = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  return !name.empty() && std::ranges::all_of(name, is_right);
}

/// The names of the functions of several steps. What else an object declares behind its stem cannot be one.
void check_step_names(const std::filesystem::path& stem, const std::vector<std::string>& names) {
  constexpr std::string_view taken[] = {"state", "init", "supported", "weights_bytes", "numeric_contract"};
  require(!names.empty(), "export_objects: no step is given: give each a name, such as {{\"train\", step}, ",
          "{\"predict\", predict}}");
  const std::string first = stem.filename().string();
  for (std::size_t k = 0; k < names.size(); ++k) {
    const std::string shown = printable(names[k], true);
    require(is_of_c(names[k]), "export_objects: `", shown, "` ends the name of a function in C, ", first, "_", shown,
            ", so it has to be of letters, digits and _");
    require(std::ranges::find(taken, names[k]) == std::end(taken), "export_objects: ", first, "_", shown,
            " is what every object declares already: choose another name for this step");
    require(!is_of_objects(text(first, "_", names[k])), "export_objects: ", first, "_", shown,
            " begins as the names within every object do: choose another name for this step");
    require(std::find(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(k), names[k]) ==
                names.begin() + static_cast<std::ptrdiff_t>(k),
            "export_objects: two steps have the name `", shown, "`");
  }
}

constexpr std::string_view weights_option = "the file of weights (--weights of gradus compile)";

/// The path from the root without links and dots, of a file that need not exist.
std::filesystem::path whole_path(const std::filesystem::path& place) {
  std::error_code problem;
  const std::filesystem::path absolute = std::filesystem::absolute(place, problem);  // before dots are resolved
  std::filesystem::path whole = std::filesystem::weakly_canonical(absolute, problem);
  return problem ? absolute.lexically_normal() : whole;
}
bool are_one_file(const std::filesystem::path& a, const std::filesystem::path& b) {
  return whole_path(a) == whole_path(b);
}

/// A file can be there, as far as that is known before it is written.
void check_place(const std::filesystem::path& place) {
  namespace fs = std::filesystem;
  if (place.empty()) return;
  std::error_code none;
  require(!fs::is_directory(place, none), "export_object: ", place.string(),
          " is a directory, and a file is to be written there: choose another name, or remove it");
  const fs::path folder = place.has_parent_path() ? place.parent_path() : ".";
  require<Unavailable>(fs::is_directory(folder, none), "export_object: ", place.string(),
                       " cannot be written: ", folder.string(),
                       fs::exists(folder, none) ? " is no directory" : " does not exist: make it first");
}

}  // namespace

std::string object_function_name(const std::filesystem::path& stem) {
  std::string name = stem.filename().string();
  require(is_of_c(name) && !(name.front() >= '0' && name.front() <= '9'), "export_object: the stem ", stem.string(),
          " names the functions of the object, so its last part has to be a ",
          "name in C, of letters, digits and _, such as train_step");
  require(!is_function_of_c(name), "export_object: the stem ", stem.string(),
          " names the functions of the object, and `", name,
          "` has a meaning in C or C++ already, as a word of the language, a function of the C library or a name ",
          "reserved for them: choose another, such as ", suggested_for(name));
  require(!is_of_objects(name), "export_object: the stem ", stem.string(), " names the functions of the object, and `",
          name, "` begins as the names within every object do: choose another, such as ", suggested_for(name));
  return name;
}

ObjectFiles object_places(const std::filesystem::path& stem, const std::filesystem::path& weights) {
  (void)object_function_name(stem);
  ObjectFiles files{stem.string() + ".o", stem.string() + ".h", weights};
  require(weights.empty() || weights.has_filename(), "export_object: ", weights_option, " ", weights.string(),
          " ends without a name: name a file in it, such as ", stem.filename().string(), ".weights");
  for (const std::filesystem::path* place : {&files.object, &files.header, &files.weights}) check_place(*place);
  require(!are_one_file(files.object, files.header), "export_object: ", files.object.string(), " and ",
          files.header.string(), " are one file, by a symbolic link: remove the link, or choose another stem");
  for (const std::filesystem::path* place : {&files.object, &files.header})
    require(weights.empty() || !are_one_file(*place, weights), "export_object: ", weights_option, " ", weights.string(),
            " is the place of the object or of its header, ", place->string(),
            ": give the weights a file of their own, such as ", stem.string(), ".weights");
  return files;
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

std::shared_ptr<const TracedStep> traced_step(const FunctionOptions& function, const std::string& title,
                                              const std::vector<Spec>& arguments, Draft draft) {
  auto [segment, graph] = std::move(draft).take_leaf(title, "export_object");
  return std::make_shared<const TracedStep>(
      TracedStep{function, title, arguments, std::move(segment), std::move(graph)});
}

ObjectFiles write_object_files(const std::filesystem::path& stem, const std::vector<std::string>& names,
                               const TracedSteps& traced, const ObjectOptions& options) {
  const ObjectFiles files = object_places(stem, options.weights);
  const std::string name = object_function_name(stem);
  ObjectSteps all = StepsOfDrafts(traced, !options.weights.empty()).take();
  all.name = name;
  for (std::size_t k = 0; k < all.steps.size(); ++k) {
    all.steps[k].title = names[k];
    all.steps[k].name = names[k].empty() ? name : text(name, "_", names[k]);
  }
  all.random_state = random_state();
  all.instruction_set = options.instruction_set;
  all.target = options.target;
  all.weights_file = options.weights.filename().string();
  all.declarations = options.declarations;
  const ObjectText made = make_object(all);
  std::deque<PendingFile> pending;
  pending.emplace_back(files.object, made.object);
  pending.emplace_back(files.header, made.header);
  if (!files.weights.empty()) pending.emplace_back(files.weights, made.weights);
  PendingFile::put_in_place(pending);
  return files;
}

ObjectFiles export_steps(const std::filesystem::path& stem, const std::vector<StepToTrace>& steps,
                         const ObjectOptions& options) {
  std::vector<std::string> names;
  for (const StepToTrace& step : steps) names.push_back(step.name);
  (void)object_places(stem, options.weights);
  check_step_names(stem, names);
  TracedSteps traced;
  for (const StepToTrace& step : steps) traced.push_back(step.trace());
  return write_object_files(stem, names, traced, options);
}

ObjectFiles export_objects(const std::filesystem::path& stem, const std::vector<ExportedStep>& steps,
                           const ObjectOptions& options) {
  std::vector<StepToTrace> given;
  for (const ExportedStep& step : steps) given.push_back({step.name(), [&step] { return step.trace(); }});
  return export_steps(stem, given, options);
}

}  // namespace gradus
