/// Formulas of elementwise values, by op and operand types: kept, since recording one takes longer than all else that
/// is asked of it.
#pragma once
#include <map>
#include <utility>
#include <vector>
#include "gradus/graph/graph.h"

namespace gradus {

class KnownFormulas {
 public:
  /// Of an elementwise value. Holds as long as this lives.
  const scalar::Code& of(const Graph& graph, const Value& v);

 private:
  struct Known {
    AnyOp op;  // keeps its record, which is the key with the operands' types
    scalar::Code code;
  };
  std::map<std::pair<const OpRecord*, std::vector<DType>>, Known> known_;
};

}  // namespace gradus
