/// Stages that read several others, and passes whose elements are those of several passes.
#include <algorithm>
#include "gradus/base/error.h"
#include "gradus/data/stage.h"

namespace gradus {

Tensors PartedPass::at(std::int64_t index) {
  const Place place = place_of(index);
  return part(place.part).at(place.index);
}

void PartedPass::write(std::span<const std::int64_t> indices, std::span<std::byte* const> out) {
  std::vector<std::byte*> ends(out.begin(), out.end());
  for (std::size_t i = 0; i < indices.size();) {
    const std::int64_t current = place_of(indices[i]).part;
    within_.clear();
    for (Place place; i < indices.size() && (place = place_of(indices[i])).part == current; ++i)
      within_.push_back(place.index);
    part(current).write(within_, ends);
    for (std::size_t field = 0; field < ends.size(); ++field)
      ends[field] += static_cast<std::int64_t>(within_.size()) * bytes_of(specs_[field]);
  }
}

Tensors PartedPass::stack(const std::vector<Spec>& specs, std::span<const std::int64_t> indices) {
  Pass* only = only_part_of(indices);
  return only ? only->stack(specs, within_) : Pass::stack(specs, indices);
}

std::optional<ChosenRows> PartedPass::chosen(std::span<const std::int64_t> indices) {
  Pass* only = only_part_of(indices);
  return only ? only->chosen(within_) : std::nullopt;
}

std::optional<std::int64_t> PartedPass::rows_of(std::int64_t index) {
  const Place place = place_of(index);
  return part(place.part).rows_of(place.index);
}

std::optional<Tensors> PartedPass::rows_at(std::int64_t index, RowRange rows) {
  const Place place = place_of(index);
  return part(place.part).rows_at(place.index, rows);
}

std::optional<ChosenRows> PartedPass::chosen_rows(std::int64_t index, RowRange rows) {
  const Place place = place_of(index);
  return part(place.part).chosen_rows(place.index, rows);
}

/// The one part that has all of them, with their indices in it in `within_`; else null.
Pass* PartedPass::only_part_of(std::span<const std::int64_t> indices) {
  within_.clear();
  const std::int64_t current = indices.empty() ? 0 : place_of(indices[0]).part;
  for (const std::int64_t index : indices) {
    const Place place = place_of(index);
    if (place.part != current) return nullptr;
    within_.push_back(place.index);
  }
  return &part(current);
}

bool JoiningStage::is_counted() const {
  return std::ranges::all_of(parts_, [](const StagePointer& part) { return part->is_counted(); });
}

int JoiningStage::parallel_calls() const {
  int most = autotune;
  for (const StagePointer& part : parts_) most = std::max(most, part->parallel_calls());
  return most;
}

std::optional<int> JoiningStage::batchings() const {
  std::optional<int> fewest;
  bool all_known = true;
  for (const StagePointer& part : parts_) {
    const std::optional<int> of_part = part->batchings();
    all_known = all_known && of_part;
    if (of_part) fewest = std::min(fewest.value_or(*of_part), *of_part);
  }
  return all_known || fewest == 0 ? fewest : std::nullopt;
}

bool JoiningStage::repeats_itself() const {
  return std::ranges::all_of(parts_, [](const StagePointer& part) { return part->repeats_itself(); });
}

std::vector<const Stage*> JoiningStage::sources() const {
  std::vector<const Stage*> sources;
  for (const StagePointer& part : parts_) sources.push_back(part.get());
  return sources;
}

std::vector<Spec> specs_of_all(std::string_view stage, const std::vector<StagePointer>& parts) {
  std::vector<Spec> specs = parts[0]->specs();
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const std::vector<Spec>& others = parts[i]->specs();
    require(others.size() == specs.size(), stage, ": dataset ", i, " has ", others.size(), " fields, dataset 0 has ",
            specs.size());
    for (std::size_t field = 0; field < specs.size(); ++field) {
      Spec& spec = specs[field];
      const Spec& other = others[field];
      require(other.dtype == spec.dtype && other.shape.rank() == spec.shape.rank(), stage, ": field ", field,
              " of dataset ", i, " is ", other, ", that of dataset 0 is ", parts[0]->specs()[field],
              "; bring them to one dtype and number of dimensions in a map");
      widen_sizes(spec.shape, other.shape);
    }
  }
  return specs;
}

std::int64_t sum_of_lengths(std::int64_t a, std::int64_t b) { return a > endless_length - b ? endless_length : a + b; }

}  // namespace gradus
