/// Recording: one run of a trace in a form in which two runs can be compared. They should be the same program. C++ sees
/// a size that varies as a negative number. If it counts, branches or computes with it, the program is not that of the
/// size itself.
#pragma once
#include <mutex>
#include <set>
#include <shared_mutex>
#include "gradus/base/rooms.h"
#include "gradus/function/trace.h"
#include "gradus/function/traced_function.h"

namespace gradus {

struct Recording {
  Graph graph;  // predicates of C++ branches, then results that are not empty, then assigned values
  struct Input {
    Source source;
    Ref<Node> node;  // of a capture
    const VariableCell* cell = nullptr;
  };
  std::vector<Input> inputs;  // behind graph.inputs
  std::vector<bool> ways;     // of the branches
  std::vector<bool> results;  // true where the result exists
  std::string lengths;        // of vectors, and keys of maps, of the result
  std::vector<const VariableCell*> assigned;
  std::size_t applications = 0;
  Trace::Choices choices;  // of the library, by sizes
};

Recording record(const Trace& trace, const Called& called);

/// True if a size in `graph` names a symbol that a trace with `symbols` of them does not have: C++ has computed with
/// the number that stands for an open size, and the result stands for another one.
bool has_other_symbols(const Graph& graph, std::size_t symbols);

/// How `open`, made for sizes that vary, differs at these values of them from `known`, made for these sizes, after all
/// rewriting that changes no bit: "multiply : f32[3] with the sizes known, fill : f32[3] without". Empty: they are the
/// same program.
std::string difference(const Recording& open, std::span<const std::int64_t> symbols, const Recording& known);

/// Sizes of calls, remembered; for any number of threads. It forgets all when they become too many.
class SizesSeen {
 public:
  bool contains(const std::vector<std::int64_t>& sizes) const;
  void insert(const std::vector<std::int64_t>& sizes);

 private:
  static constexpr std::size_t most = 4096;
  mutable std::shared_mutex guard_;
  std::set<std::vector<std::int64_t>> seen_;
};

}  // namespace gradus
