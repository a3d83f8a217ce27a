/// Trace: the tracing of one call. Arguments are symbols, a Variable that is read is a parameter of the program, one
/// that is assigned is an output. No two nodes are ever merged here: that is the compiler's job alone.
#pragma once
#include <functional>
#include <map>
#include <set>
#include "gradus/function/variable_cell.h"
#include "gradus/graph/context.h"
#include "gradus/graph/graph.h"

namespace gradus {

/// Where the callable that is being traced lies, to find what it captured by value.
struct ClosureRange {
  const void* begin = nullptr;
  std::size_t bytes = 0;
};

class Trace : public Context {
 public:
  explicit Trace(std::span<const Spec> arguments, ClosureRange closure = {});
  ~Trace() override;
  Tensor read(VariableCell& cell) override;
  void assign(VariableCell& cell, const Tensor& value) override;

  /// `dimension` must not be negative in any call of what is traced; else `otherwise` is what the user did wrong.
  struct Bound {
    std::int64_t dimension;
    std::string otherwise;
  };
  void add_bound(Bound bound) { bounds_.push_back(std::move(bound)); }
  const std::vector<Bound>& bounds() const { return bounds_; }

  /// A key for the next random op of this call: another one in every call of the compiled function.
  Tensor next_random_key();
  /// A model that lies inside the closure is a copy: assigning one of its cells is a user's mistake.
  void note_use(const void* object, const Variables& cells);

  /// The innermost Trace of this thread, or null.
  static Trace* current();

  struct Cell {
    std::shared_ptr<VariableCell> cell;
    Tensor parameter;
    Tensor now;
    bool assigned = false;
  };
  const Tensors& parameters() const { return parameters_; }
  const std::vector<std::unique_ptr<Cell>>& cells() const { return cells_; }
  /// The parameter that is bound to the number of the call; empty if nothing random was traced.
  const Tensor& call_key() const { return call_key_; }

 private:
  Cell& cell_of(VariableCell& cell);
  Tensors parameters_;
  std::vector<std::unique_ptr<Cell>> cells_;
  std::map<const VariableCell*, Cell*> by_cell_;
  std::set<const VariableCell*> copies_;
  std::vector<Bound> bounds_;
  Tensor call_key_;
  std::uint64_t ordinals_ = 0;
  ClosureRange closure_;
  Trace* outer_;
};

}  // namespace gradus
