/// Writing both files or none; reading a state.
#include "gradus/function/object_files.h"
#include <map>
#include "gradus/backend/object.h"
#include "gradus/base/input_file.h"
#include "gradus/base/nearest.h"
#include "gradus/function/pending.h"
#include "gradus/function/variable_cell.h"
#include "gradus/ops/random_state.h"

namespace gradus {
namespace {

/// The variable of a field; `which`: its place among those of one name.
VariableCell& cell_of(const StateField& field, std::size_t which, const Variables& variables) {
  std::vector<std::string> names;
  for (const auto& cell : variables.cells()) {
    if (cell->name == field.name && which-- == 0) return *cell;
    names.push_back(cell->name);
  }
  throw InvalidArgument(
      text("load_object_state: there is no variable `", field.name, "` for the field ", field.spec,
           did_you_mean(field.name, names), "; ", variables.cells().size(),
           " variables are given. Give all variables of the ",
           "step, of the model and of the optimizer: in a new process both have them once the model is built, by ",
           "model.build({f32, {any_size, ...}}) or a call, and the optimizer, by "
           "optimizer.build(model.trainable_variables())"));
}

}  // namespace

void load_object_state(const std::filesystem::path& file, const std::filesystem::path& header,
                       const Variables& variables) {
  const StateLayout layout = state_layout(read_text_file(header));
  const std::vector<std::byte> bytes = read_whole_file(file);
  require<DataError>(std::ssize(bytes) == layout.bytes, "load_object_state: ", file.string(), " has ", bytes.size(),
                     " bytes, and a state of ", header.string(), " has ", layout.bytes,
                     ": write the struct as a whole, by the program that was compiled with this header");
  std::map<std::string, std::size_t> seen;
  std::vector<std::pair<VariableCell*, Tensor>> values;
  for (const StateField& field : layout.fields) {
    VariableCell& cell = cell_of(field, seen[field.name]++, variables);
    require(cell.spec == field.spec, "load_object_state: variable ", cell.name, " is ", cell.spec,
            ", and the field of its name is ", field.spec);
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
