/// A cache of the formulas of elementwise values, by op and operand types: recording a formula takes longer than using
/// it.
#pragma once
#include <map>
#include <utility>
#include <vector>
#include "gradus/base/rooms.h"
#include "gradus/graph/graph.h"

namespace gradus {

class KnownFormulas {
 public:
  /// The formula of an elementwise value. The reference is valid as long as this lives.
  const scalar::Code& of(const Graph& graph, const Value& v);

 private:
  struct Known {
    AnyOp op;  // keeps its record, which is the key with the operands' types
    scalar::Code code;
  };
  std::map<std::pair<const OpRecord*, std::vector<DType>>, Known> known_;
};

}  // namespace gradus
