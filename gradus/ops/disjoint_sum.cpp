/// The sum of two concatenations that do not overlap.
#include "gradus/ops/disjoint_sum.h"
#include <algorithm>
#include "gradus/ops/concat.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/size_choice.h"
#include "gradus/ops/views.h"

namespace gradus {
namespace {

/// A walk along the parts of a concatenation.
class SumParts {
 public:
  SumParts(const Inputs& parts, int axis) : axis_(axis) {
    for (const Ref<Node>& part : parts) parts_.emplace_back(part);
    enter();
  }
  bool known() const {
    return std::ranges::all_of(parts_, [&](const Tensor& part) { return part.shape()[axis_] >= 0; });
  }
  bool done() const { return next_ == parts_.size(); }
  bool in_zeros() const { return zeros_; }
  /// True if the rest of the part is all of it.
  bool at_begin() const { return rest_ == part().shape()[axis_]; }
  const Tensor& part() const { return parts_[next_]; }
  std::int64_t rest() const { return rest_; }
  void advance(std::int64_t n) {
    rest_ -= n;
    if (rest_ > 0) return;
    ++next_;
    enter();
  }

 private:
  /// Neighbouring zeros are one run.
  void enter() {
    if (done()) return;
    zeros_ = is_zeros(part());
    rest_ = part().shape()[axis_];
    while (zeros_ && next_ + 1 < parts_.size() && is_zeros(parts_[next_ + 1])) rest_ += parts_[++next_].shape()[axis_];
  }
  int axis_;
  Tensors parts_;
  std::size_t next_ = 0;
  std::int64_t rest_ = 0;
  bool zeros_ = false;
};

}  // namespace

bool is_zeros(const Tensor& x) {
  const Ref<Node>& node = x.node();
  const Ref<Node>& source = node->op.as<Broadcast>() ? node->inputs[0] : node;
  return source->op && source->op == fill({}, 0, x.dtype()).node()->op;
}

namespace {

/// The parts of the sum; nothing if parts overlap, or if sizes are not known.
std::optional<Tensors> joined_parts(SumParts x, SumParts y, const Spec& spec, int axis) {
  if (!x.known() || !y.known()) return {};
  Tensors joined;
  while (!x.done() && !y.done()) {
    if (x.in_zeros() && y.in_zeros()) {
      const std::int64_t n = std::min(x.rest(), y.rest());
      Shape gap = spec.shape;
      gap.set(axis, n);
      joined.push_back(zeros(gap, spec.dtype));
      x.advance(n);
      y.advance(n);
      continue;
    }
    SumParts &given = x.in_zeros() ? y : x, &zero = x.in_zeros() ? x : y;
    const std::int64_t n = given.rest();
    if (!zero.in_zeros() || zero.rest() < n || !given.at_begin()) return {};
    joined.push_back(given.part());
    given.advance(n);
    zero.advance(n);
  }
  return joined;
}

}  // namespace

std::optional<Tensor> disjoint_sum(const Tensor& a, const Tensor& b) {
  const Concat *first = a.node()->op.as<Concat>(), *second = b.node()->op.as<Concat>();
  std::optional<Tensors> parts;
  if (first && second && first->axis == second->axis && a.spec() == b.spec())
    parts = joined_parts(SumParts(a.node()->inputs, first->axis), SumParts(b.node()->inputs, first->axis), a.spec(),
                         first->axis);
  // Asked of every sum: at some sizes a padding is empty, and what is padded is no concat.
  if (!SizeChoice::choose(parts.has_value()) || !parts) return {};
  return concat(*parts, first->axis);
}

}  // namespace gradus
