/// Chooses the program for a structure, and the programs to keep.
#include "gradus/function/program_cache.h"
#include <array>
#include <mutex>
#include "gradus/backend/tiers.h"
#include "gradus/function/keyed_list.h"

namespace gradus {
namespace {

/// One structure.
struct Known {
  Graph graph;                                // keeps the op records alive whose addresses stand in the key
  std::shared_ptr<const Executable> program;  // null until it is worth compiling
  int sights = 0;
  std::int64_t last_run = 0;  // which one of all runs it was
};

/// A structure that a program of its form serves. A few that come back soon are kept, so that a loop finds it as fast
/// as a program of its own.
struct Served {
  Graph graph;  // as above
  ProgramForSizes program;
};
constexpr std::size_t most_served = 64;

struct Cache {
  std::mutex guard;
  KeyedList<Known> known;
  KeyedList<Served> served;
  std::array<std::uint64_t, most_served> served_last = {};  // their hashes
  std::size_t next_served = 0;
  KeyedList<std::shared_ptr<OpenForm>> forms;
  std::size_t limit = std::size_t{256} << 20;
  std::int64_t runs = 0, compilations = 0;

  std::size_t bytes() const { return known.bytes() + forms.bytes() + served.bytes(); }

  void evict() {
    while (served.size() > (bytes() > limit ? 0 : most_served)) served.drop_oldest();
    while (bytes() > limit && known.size() + forms.size() > 1) {
      const bool from_forms = known.size() <= 1 || (forms.size() > 0 && forms.bytes() > known.bytes());
      if (from_forms) forms.drop_oldest();
      else known.drop_oldest();
    }
  }
};
Cache& cache() {
  static auto* only = new Cache;
  return *only;
}

std::size_t bytes_of(const Graph& graph) { return graph.values.size() * (sizeof(Value) + 16); }

std::size_t bytes_of(const Known& structure, std::size_t key_words) {
  return sizeof structure + key_words * sizeof(std::uint64_t) + bytes_of(structure.graph) +
         (structure.program ? structure.program->footprint() : 0);
}

/// A program of the form of `graph`, if it has one by now.
std::optional<ProgramForSizes> program_of_form(DeviceKind kind, const Graph& graph, bool comes_back) {
  if (graph.size() > OpenForm::most_values) return {};
  Spelling spelling(kind, graph);
  if (spelling.numbers.empty()) return {};
  const std::uint64_t hash = KeyedList<Known>::hash_of_words(spelling.form);
  std::shared_ptr<OpenForm> form;
  {
    std::lock_guard lock(cache().guard);
    auto* entry = cache().forms.find(hash, spelling.form);
    form =
        entry ? entry->value
              : cache().forms.add(hash, spelling.form, std::make_shared<OpenForm>(kind, std::move(spelling.ops))).value;
  }
  auto found = form->find(graph, spelling.numbers, comes_back);
  const std::size_t bytes = form->footprint() + spelling.form.size() * sizeof(std::uint64_t);
  std::lock_guard lock(cache().guard);
  if (found && found->is_fresh) ++cache().compilations;
  if (auto* entry = cache().forms.find(hash, spelling.form)) cache().forms.set_bytes(*entry, bytes);
  cache().evict();
  return found;
}

void add_served(std::uint64_t hash, std::span<const std::uint64_t> key, Graph graph, const ProgramForSizes& program) {
  std::lock_guard lock(cache().guard);
  if (std::ranges::find(cache().served_last, hash) == cache().served_last.end()) {
    cache().served_last[cache().next_served++ % most_served] = hash;
    return;
  }
  if (cache().served.find(hash, key)) return;
  const std::size_t bytes = sizeof(Served) + key.size() * sizeof(std::uint64_t) + bytes_of(graph);
  auto& entry = cache().served.add(hash, key, {std::move(graph), program});
  cache().served.set_bytes(entry, bytes);
  cache().evict();
}

}  // namespace

ProgramForSizes cached_program(const Device& device, std::span<const std::uint64_t> key,
                               const std::function<Graph()>& build) {
  Backend& backend = backend_of(device);
  const std::uint64_t hash = KeyedList<Known>::hash_of_words(key);
  Graph graph;
  bool worth = false;
  {
    std::lock_guard lock(cache().guard);
    ++cache().runs;
    const auto* entry = cache().known.find(hash, key);
    if (entry && entry->value.program) return {entry->value.program};
    if (const auto* served = cache().served.find(hash, key)) return served->value.program;
    if (entry) {
      graph = entry->value.graph;
      worth = is_worth_compiling(graph, entry->value.sights, cache().runs - entry->value.last_run);
    }
  }
  const bool is_new = graph.values.empty();
  if (is_new) graph = build();
  if (auto open = program_of_form(device.kind, graph, worth)) {
    if (open->is_compiled) add_served(hash, key, std::move(graph), *open);
    return std::move(*open);
  }
  if (is_new) worth = !is_interpreted_sooner(graph);
  const auto program = backend.compile(graph, {.tier = worth ? Tier::compiled : Tier::interpreted, .device = device});
  std::lock_guard lock(cache().guard);
  auto* entry = cache().known.find(hash, key);
  if (!entry) entry = &cache().known.add(hash, key, {.graph = std::move(graph)});
  Known& structure = entry->value;
  ++structure.sights;
  structure.last_run = cache().runs;
  if (worth) {
    structure.program = program;
    ++cache().compilations;
  }
  cache().known.set_bytes(*entry, bytes_of(structure, key.size()));
  cache().evict();
  return {program};
}

ProgramCacheUse program_cache_use() {
  std::lock_guard lock(cache().guard);
  return {cache().known.size() + cache().served.size() + cache().forms.size(), cache().bytes(), cache().limit,
          cache().compilations};
}

void set_program_cache_limit(std::size_t bytes) {
  std::lock_guard lock(cache().guard);
  cache().limit = bytes;
  cache().evict();
}

}  // namespace gradus
