/// Region: a graph as an attribute of an op: the body of a loop, a branch, or a function whose gradient is given. It is
/// immutable and shared; equal regions are equal attributes. RegionTrace makes one by running a C++ function on
/// symbols; replay applies the recorded ops to other tensors.
///
/// Values from outside that a body uses, Variables included, become further inputs of the region, its captures. So a
/// region is closed, and gradients by captures flow through the op's operands.
#pragma once
#include <functional>
#include <memory>
#include "gradus/graph/graph.h"

namespace gradus {

namespace detail::inline rooms {

class Region {
 public:
  /// Regions in regions in regions: walks over them recurse.
  static constexpr int max_depth = 32;

  Region() = default;
  /// `graph` must yield something and let nothing die. InvalidArgument if regions are nested more than max_depth deep,
  /// or if its
  /// values are on two devices; it names none: it runs where the operands of its op are.
  explicit Region(Graph graph);

  explicit operator bool() const { return static_cast<bool>(contents_); }
  const Graph& graph() const;
  std::size_t inputs() const { return graph().inputs.size(); }
  std::size_t outputs() const { return graph().outputs.size(); }
  const Spec& input(std::size_t k) const { return graph()[graph().inputs[k]].spec; }
  const Spec& output(std::size_t k) const { return graph()[graph().outputs[k]].spec; }
  std::vector<Spec> input_specs() const;
  std::uint64_t hash() const;
  int depth() const;
  bool may_fail() const;
  int symbols() const;
  bool operator==(const Region& other) const;

 private:
  struct Contents;
  std::shared_ptr<const Contents> contents_;
};

}  // namespace detail::inline rooms

/// On one line: %0 = input : f32[3] | %1 = exp %0 : f32[3] | return %1
std::string to_text(const detail::Region& region);
namespace detail::inline rooms {

/// InvalidArgument if `text` is no region.
Region parse_region(std::string_view text);

/// One run of a function on symbols, from which regions are made.
class RegionTrace {
 public:
  /// Calls f on symbols of these specs. `construct` is what errors call it: "cond". Within f, assigning a Variable and
  /// a C++ branch on what it computes are InvalidArguments, as is a result that is empty or of a call that is over.
  RegionTrace(std::string_view construct, Specs specs, const std::function<Tensors(In)>& f);
  const Tensors& symbols() const { return symbols_; }
  const Tensors& results() const { return results_; }
  /// One more symbol, for an input that the function did not ask for.
  Tensor symbol(const Spec& spec) const { return Tensor::parameter(spec, id_); }

  /// Adds what `roots` use from around the trace to `captures`, each once.
  void collect(In roots, Tensors& captures) const;
  /// The region from (symbols, captures) to roots. The captures must hold all that collect(roots) adds.
  Region region(In roots, In symbols, In captures) const;

 private:
  std::uint32_t id_ = 0;
  Tensors symbols_, results_;
};

/// The region of all results, and what it captured: its inputs are (symbols, captures).
struct Captured {
  Region region;
  Tensors captures;
};
Captured capture(const RegionTrace& trace);

std::vector<Spec> specs_of(In in);
Tensors concatenated(std::initializer_list<In> lists);

/// Applies the ops of `region` to `inputs`, whose specs are those of its inputs.
Tensors replay(const Region& region, In inputs);

}  // namespace detail::inline rooms

}  // namespace gradus
