#include "gradus/distribute/parameter_servers/parameter_layout.h"
#include <algorithm>
#include <map>
#include <numeric>
#include "gradus/function/variable_cell.h"

namespace gradus::detail {
namespace {

bool is_small(const VariableCell& cell) { return cell.spec.shape.size() == 1; }

}  // namespace

void ParameterLayout::add(const StepProgram& program) {
  std::vector<StepProgram::Cell> cells = program.cells();
  for (const StepProgram::Cell& cell : cells)
    require(!cell->spec.device.is_named() || cell->spec.device == Placement(cpu(0)), "variable ", cell->name, " is on ",
            cell->spec.device, ": with parameter servers Variables are on the processor");
  // Small Variables that follow from small ones and from pushes are on every server; all others that are updated
  // together lie together.
  std::unordered_map<const VariableCell*, bool> is_shared;
  for (const StepProgram::Cell& cell : cells)
    is_shared[cell.get()] = numbers_.contains(cell.get()) ? of(*cell).server == everywhere : is_small(*cell);
  for (bool has_changed = true; has_changed;) {
    has_changed = false;
    for (const StepProgram::Update& update : program.updates()) {
      bool& shared = is_shared.at(update.cell.get());
      if (!shared || std::ranges::all_of(update.reads, [&](const auto& each) { return is_shared.at(each.get()); }))
        continue;
      require(!numbers_.contains(update.cell.get()), "strategy: variable ", update.cell->name,
              " is updated from variable ", update.reads[0]->name,
              ", but lies on every parameter server since an earlier step, where that is not: schedule the step that "
              "updates them first");
      shared = false;
      has_changed = true;
    }
  }
  std::unordered_map<const VariableCell*, std::size_t> group;  // the first cell of it
  std::vector<std::size_t> first(cells.size());
  std::iota(first.begin(), first.end(), std::size_t{0});
  for (std::size_t i = 0; i < cells.size(); ++i) group.emplace(cells[i].get(), i);
  const auto root = [&](std::size_t i) {
    while (first[i] != i) i = first[i];
    return i;
  };
  for (const StepProgram::Update& update : program.updates()) {
    if (is_shared.at(update.cell.get())) continue;
    for (const StepProgram::Cell& read : update.reads) {
      if (is_shared.at(read.get())) continue;
      const std::size_t a = root(group.at(update.cell.get())), b = root(group.at(read.get()));
      first[std::max(a, b)] = std::min(a, b);
    }
  }
  struct Group {
    std::size_t first;
    std::int64_t bytes = 0;
    int server = everywhere;
    const VariableCell* known = nullptr;
  };
  std::map<std::size_t, Group> groups;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (is_shared.at(cells[i].get())) continue;
    Group& one = groups.try_emplace(root(i), Group{root(i)}).first->second;
    if (!numbers_.contains(cells[i].get())) {
      one.bytes += bytes_of(cells[i]->spec);
      continue;
    }
    const int server = of(*cells[i]).server;
    require(one.known == nullptr || one.server == server, "strategy: this step updates variables ",
            one.known == nullptr ? "" : one.known->name, " and ", cells[i]->name,
            " together, but they lie on parameter servers ", one.server, " and ", server,
            " since an earlier step: schedule the step that updates them first");
    one.server = server;
    one.known = cells[i].get();
  }
  std::vector<Group*> order;
  for (auto& [number, one] : groups) order.push_back(&one);
  std::ranges::stable_sort(order, std::greater<>(), [](const Group* one) { return one->bytes; });
  for (Group* const one : order) {
    if (one->known == nullptr) one->server = static_cast<int>(std::ranges::min_element(loads_) - loads_.begin());
    loads_[static_cast<std::size_t>(one->server)] += one->bytes;
  }
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (!numbers_.emplace(cells[i].get(), places_.size()).second) continue;
    places_.push_back({cells[i], is_shared.at(cells[i].get()) ? everywhere : groups.at(root(i)).server});
  }
}

}  // namespace gradus::detail
