/// Writing both files or none; reading a state.
#include "gradus/function/object_files.h"
#include <algorithm>
#include <functional>
#include <map>
#include "gradus/backend/object.h"
#include "gradus/base/input_file.h"
#include "gradus/base/nearest.h"
#include "gradus/function/pending.h"
#include "gradus/function/variable_cell.h"
#include "gradus/ops/random_state.h"

namespace gradus {
namespace {

[[noreturn]] void refuse_missing(const StateField& field, const Variables& variables) {
  std::vector<std::string> names;
  for (const auto& cell : variables.cells()) names.push_back(cell->name);
  throw InvalidArgument(
      text("load_object_state: there is no variable `", field.name, "` for the field ", field.spec,
           did_you_mean(field.name, names), "; ", variables.cells().size(),
           " variables are given. Give all variables of the ",
           "step, of the model and of the optimizer: in a new process both have them once the model is built, by ",
           "model.build({f32, {any_size, ...}}) or a call, and the optimizer, by "
           "optimizer.build(model.trainable_variables())"));
}

/// The variables of the fields. Several of one name and spec are told apart by their age, as the fields were: two
/// models may have layers of the same names, and they may be given in any order.
class CellsOfFields {
 public:
  CellsOfFields(const StateLayout& layout, const Variables& variables) : variables_(variables) {
    for (const auto& cell : variables.cells()) by_name_[name_in_header(cell->name)].push_back(cell.get());
    for (auto& [name, cells] : by_name_)
      std::ranges::sort(cells, std::less<>(), [](const VariableCell* cell) { return cell->id; });
    for (const StateField& field : layout.fields) ++fields_[field.name][text(field.spec)];
  }

  VariableCell& next(const StateField& field) {
    const auto named = by_name_.find(field.name);
    if (named == by_name_.end()) refuse_missing(field, variables_);
    std::vector<VariableCell*> fitting;
    for (VariableCell* const cell : named->second)
      if (cell->spec == field.spec) fitting.push_back(cell);
    require(!fitting.empty(), "load_object_state: variable ", field.name, " is ", named->second.front()->spec,
            ", and the field of its name is ", field.spec);
    const std::string spec = text(field.spec);
    const std::size_t count = fields_[field.name][spec];
    require(fitting.size() <= count, "load_object_state: ", fitting.size(), " variables ", spec, " have the name `",
            field.name, "`, and the header has ", count, count == 1 ? " field" : " fields",
            " of it: give the variables of the exported steps alone, or names of ",
            "their own to those of several models");
    const std::size_t which = seen_[field.name][spec]++;
    if (which >= fitting.size()) refuse_missing(field, variables_);
    return *fitting[which];
  }

 private:
  using Counts = std::map<std::string, std::map<std::string, std::size_t>>;  // by name, by spec
  const Variables& variables_;
  std::map<std::string, std::vector<VariableCell*>> by_name_;
  Counts fields_, seen_;
};

}  // namespace

void load_object_state(const std::filesystem::path& file, const std::filesystem::path& header,
                       const Variables& variables) {
  const StateLayout layout = state_layout(read_text_file(header));
  const std::vector<std::byte> bytes = read_whole_file(file);
  require<DataError>(std::ssize(bytes) == layout.bytes, "load_object_state: ", file.string(), " has ", bytes.size(),
                     " bytes, and a state of ", header.string(), " has ", layout.bytes,
                     ": write the struct as a whole, by the program that was compiled with this header");
  CellsOfFields cells(layout, variables);
  std::vector<std::pair<VariableCell*, Tensor>> values;
  for (const StateField& field : layout.fields) {
    VariableCell& cell = cells.next(field);
    const std::int64_t size = bytes_of(field.spec);
    Ref<Buffer> buffer = Buffer::allocate(size);
    if (size > 0) std::memcpy(buffer->data(), bytes.data() + field.offset, static_cast<std::size_t>(size));
    values.emplace_back(&cell, Tensor::of_buffer(field.spec, std::move(buffer)));
  }
  for (const auto& [cell, value] : values) cell->handle.assign(value);
  if (layout.random_state < 0) return;
  std::uint64_t state;
  std::memcpy(&state, bytes.data() + layout.random_state, sizeof state);
  set_random_state(state);
}

}  // namespace gradus
