/// The executables compiled for parts of graphs.
#include "gradus/backend/parts/shared_executables.h"
#include <atomic>
#include <mutex>
#include <optional>
#include <unordered_map>
#include "gradus/compiler/recompute.h"

namespace gradus {
namespace {

/// Executables of graphs that name no device any more, by structure and options.
class SharedExecutables {
 public:
  std::shared_ptr<const Executable> find_or_compile(Backend& backend, const Graph& graph,
                                                    const CompileOptions& options) {
    const std::uint64_t hash = hash_of(graph);
    const std::lock_guard lock(guard_);
    std::erase_if(known_, [](const auto& entry) { return entry.second.executable.expired(); });
    for (auto [it, last] = known_.equal_range(hash); it != last; ++it) {
      const Known& known = it->second;
      if (known.backend != &backend || !(known.graph == graph) || !is_same(known.options, options)) continue;
      if (auto found = known.executable.lock()) return found;
    }
    auto made = backend.compile(graph, options);
    ++compilations_;
    known_.emplace(hash, Known{&backend, graph, options, made});
    return made;
  }
  std::int64_t compilations() const { return compilations_.load(std::memory_order_relaxed); }

 private:
  struct Known {
    Backend* backend;
    Graph graph;  // as it was given: keeps the records of its ops
    CompileOptions options;
    std::weak_ptr<const Executable> executable;
  };
  static bool is_same(const CompileOptions& a, const CompileOptions& b) {
    return a.disable == b.disable && a.tier == b.tier && a.max_bytes == b.max_bytes && a.symbols == b.symbols &&
           a.replaces == b.replaces && a.matmul_precision == b.matmul_precision && !a.profile &&
           !b.profile;  // a measurement belongs to one function
  }
  std::mutex guard_;
  std::unordered_multimap<std::uint64_t, Known> known_;
  std::atomic<std::int64_t> compilations_{0};
};
SharedExecutables& shared_executables() {
  static auto* only = new SharedExecutables;
  return *only;
}

}  // namespace

std::shared_ptr<const Executable> compile_once(Backend& backend, const Graph& graph, const CompileOptions& options) {
  return shared_executables().find_or_compile(backend, graph, options);
}

std::vector<std::shared_ptr<const Executable>> compile_parts(std::span<const PartOfProgram> parts,
                                                             const CompileOptions& options) {
  std::vector<std::shared_ptr<const Executable>> made;
  std::optional<BudgetTooSmall> too_small;
  for (const PartOfProgram& part : parts) try {
      made.push_back(compile_once(*part.backend, *part.graph, options));
    } catch (const BudgetTooSmall& error) {
      if (!too_small || error.smallest() > too_small->smallest()) too_small = error;
    }
  if (too_small) throw *too_small;
  return made;
}

std::int64_t placed_compilations() { return shared_executables().compilations(); }

}  // namespace gradus
