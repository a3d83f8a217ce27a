/// Implementation of the transforms behind their templates.
#include "gradus/gradients/functional.h"
#include "gradus/autodiff/jvp.h"
#include "gradus/autodiff/vmap.h"
#include "gradus/base/nesting.h"
#include "gradus/function/pending.h"
#include "gradus/gradients/chunks.h"
#include "gradus/gradients/jacobian.h"
#include "gradus/gradients/shard_target.h"
#include "gradus/graph/context.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/control_ops.h"
#include "gradus/ops/shape.h"

namespace gradus::detail {
namespace {

/// f at a point of its own: the nodes between x and y, and how far a walk has to look.
struct Evaluated {
  Nesting nesting;
  RecordingScope keep;  // should f observe a value
  std::string_view op;
  Tensor x, y;

  Evaluated(std::string_view name, const TensorMap& f, const Tensor& given) : op(name) {
    nesting.check(op);
    check("the argument", given);
    x = as_argument(given);
    y = f(x);
    check("what the function gave", y);
  }

  Stops stops() const {
    return [first = x.node()->sequence, thread = Pending::mine().number()](const Node& node) {
      return node.sequence < first || (!node.trace && node.recorder != thread);
    };
  }
  void require_scalar() const {
    require(y.shape().size() == 1, op, ": expected a function that gives a scalar, got ", y.spec(),
            "; reduce it with reduce_sum or reduce_mean");
  }
  void require_like(const Tensor& given, const Tensor& like, std::string_view what) const {
    require(given.defined(), op, ": the ", what, " is empty, expected ", like.spec());
    require(given.spec() == like.spec(), op, ": the ", what, " is ", given.spec(), ", expected ", like.spec());
  }

 private:
  void check(std::string_view what, const Tensor& t) const {
    require(t.defined(), op, ": ", what, " is empty");
    require(is_floating(t.dtype()), op, ": ", what, " is ", t.spec(), "; only floating types have derivatives");
  }
};

Tensor or_zeros(Tensor derivative, const Tensor& like) {
  return derivative.defined() ? derivative : fill_like(like, 0);
}

/// The gradient of a scalar function at the same point; in a step on shards, this shard's term of it.
Tensor gradient_at(const Evaluated& at, const ShardTarget& shards) {
  at.require_scalar();
  shards.require_whole(at.op, at.y, at.x);
  return or_zeros(gradus::vjp(shards.share(at.y), {&at.x, 1}, {}, at.stops())[0], at.x);
}

}  // namespace

std::pair<Tensor, std::function<Tensor(Tensor)>> vjp(const TensorMap& f, const Tensor& x) {
  const Evaluated at("vjp", f, x);
  const ShardTarget shards(at.y, at.stops());
  shards.require_whole(at.op, at.y, at.x);
  const auto pull = [shards, pullback = Pullback(at.y, at.x, at.stops()), from = at.y.spec(), to = at.x.spec(),
                     is_own = at.x.node()->varies](Tensor u) {
    require(u.defined(), "vjp: the cotangent is empty, expected that of the result, ", from);
    require(u.spec() == from, "vjp: the cotangent is ", u.spec(), ", expected that of the result, ", from);
    const Tensor dx = pullback(shards.share(u));
    return dx.defined() ? shards.joined(dx, is_own) : fill(to.shape, 0, to.dtype);
  };
  return {at.y, pull};
}

std::pair<Tensor, Tensor> jvp(const TensorMap& f, const Tensor& x, const Tensor& tangent) {
  const Evaluated at("jvp", f, x);
  at.require_like(tangent, at.x, "tangent");
  ShardTarget(at.y, at.stops()).require_rows(at.op, at.y, at.x);
  return {at.y, or_zeros(Pushforward(at.y, at.x, at.stops())(tangent), at.y)};
}

Tensor hessian_vector_product(const TensorMap& f, const Tensor& x, const Tensor& v) {
  const Evaluated at("hessian_vector_product", f, x);
  at.require_like(v, at.x, "vector");
  const ShardTarget shards(at.y, at.stops());
  const Tensor along = Pushforward(gradient_at(at, shards), at.x, at.stops())(v);
  return along.defined() ? shards.joined(along, at.x.node()->varies) : fill_like(at.x, 0);
}

Tensor jacobian(const TensorMap& f, const Tensor& x, JacobianOptions options) {
  const Evaluated at("jacobian", f, x);
  const ShardTarget shards(at.y, at.stops());
  shards.require_rows(at.op, at.y, at.x);
  shards.require_own(at.op, at.y);
  return jacobian_of(at.op, at.y, at.x, at.stops(), options.max_bytes);
}

/// A part of the batch at a time: so not even what f computes is kept for all examples. That the parts may be told
/// apart is found on the whole.
Tensor batch_jacobian(const TensorMap& f, const Tensor& x, JacobianOptions options) {
  const auto of = [&](const Tensor& part) {
    const Evaluated at("batch_jacobian", f, part);
    ShardTarget(at.y, at.stops()).require_own(at.op, at.y);
    return batch_jacobian_of(at.op, at.y, at.x, at.stops(), 0);
  };
  if (options.max_bytes == 0) return of(x);
  require(x.shape().rank() > 0, "batch_jacobian: x is ", x.spec(), ", which has no examples");
  const std::uint64_t began = as_argument(x).node()->sequence;
  return within_budget("batch_jacobian", options.max_bytes, began, x.shape()[0], [&](std::int64_t examples) {
    if (examples == x.shape()[0]) return of(x);
    const auto of_part = [&](In, In part) { return Tensors{of(part[0])}; };
    return scan_rows("batch_jacobian", of_part, {}, {&x, 1}, examples)[0];
  });
}

/// Its rows are its columns, so forward mode gives it as it is.
Tensor hessian(const TensorMap& f, const Tensor& x, JacobianOptions options) {
  const Evaluated at("hessian", f, x);
  const ShardTarget shards(at.y, at.stops());
  shards.require_own(at.op, at.y);
  const Tensor gradient = gradient_at(at, shards);
  Shape shape = at.x.shape();
  for (std::int64_t d : at.x.shape()) shape.push_back(d);
  return within_budget(at.op, options.max_bytes, at.x.node()->sequence, at.x.shape().size(), [&](std::int64_t at_once) {
    const Pushforward push(gradient, at.x, at.stops());
    return reshape(rows_of(at.op, push, at.x.spec(), at.x.spec(), at_once), shape);
  });
}

Tensor vectorized_map(const TensorMap& f, const Tensor& xs) {
  require(xs.shape().rank() > 0, "vectorized_map: xs is ", xs.spec(), ", which has no rows; expected [n, ...]");
  const auto row = [&](In in) {
    const Tensor y = f(in[0]);
    require(y.defined(), "vectorized_map: the function gave an empty tensor for a row ", in[0].spec());
    return Tensors{y};
  };
  return vmap(row, {&xs, 1}, xs.shape()[0])[0];
}

}  // namespace gradus::detail
