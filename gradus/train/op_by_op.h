/// A step run op by op, so that the result of each op can be inspected.
#pragma once
#include <span>
#include <utility>
#include <vector>
#include "gradus/base/rooms.h"
#include "gradus/function/pending.h"
#include "gradus/graph/context.h"
#include "gradus/graph/tensor.h"

namespace gradus {

/// While it lives, everything that is recorded is computed at once, and keeps its history.
class OpByOp {
 public:
  OpByOp() : before_(std::exchange(Pending::mine().eager(), true)) {}
  ~OpByOp() { Pending::mine().eager() = before_; }
  OpByOp(const OpByOp&) = delete;

 private:
  RecordingScope recording_;
  bool before_;
};

/// All ops behind `last`, in the order of recording; alive as long as `last` and the recording.
std::vector<const Node*> history(std::span<const Tensor> last);

}  // namespace gradus
