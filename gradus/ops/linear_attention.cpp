/// The recurrence of linear attention as a scan: all inputs of a place lie side by side in one row.
#include "gradus/ops/linear_attention.h"
#include <cmath>
#include "gradus/base/floating_point_state.h"
#include "gradus/base/rooms.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/control.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/shape.h"

namespace gradus {
namespace {

constexpr std::string_view linear_attention_op = "linear_attention";

/// [batch, time, columns], columns known.
void check_rows(std::string_view name, const Tensor& x, const Tensor& query) {
  require(is_floating(x.dtype()) && x.dtype() == query.dtype(), linear_attention_op, ": ", name, " is ", x.spec(),
          ", query is ", query.spec(), "; expected one floating dtype; cast it");
  require(x.shape().rank() == 3 && x.shape()[2] >= 0, linear_attention_op, ": ", name, " is ", x.spec(),
          ", expected [batch, time, width] with a known width");
  require(x.shape()[0] == query.shape()[0] && x.shape()[1] == query.shape()[1], linear_attention_op, ": ", name, " is ",
          x.spec(), ", query is ", query.spec(), ": batch or time differ");
}

std::int64_t divided(std::string_view name, const Tensor& x, std::int64_t heads) {
  require(x.shape()[2] % heads == 0, linear_attention_op, ": ", name, " is ", x.spec(), ", which ", heads,
          " heads do not divide");
  return x.shape()[2] / heads;
}

/// Columns of a row, taken one part after the other.
class AttentionParts {
 public:
  explicit AttentionParts(const Tensor& row) : row_(row) {}
  Tensor next(std::int64_t columns, const Shape& shape) {
    const Tensor part = slice_within(row_, -1, at_, columns);
    at_ += columns;
    return reshape(part, shape);
  }

 private:
  const Tensor& row_;
  std::int64_t at_ = 0;
};

}  // namespace

LinearAttentionResult linear_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                       const LinearAttentionOptions& options) {
  const HostFloats floats;
  check_options("linear_attention", options);
  const std::int64_t heads = options.heads, groups = options.key_heads;
  require(groups > 0 && heads > 0 && heads % groups == 0, linear_attention_op,
          ": heads must be a multiple of key_heads, got ", heads, " and ", groups);
  std::vector<Tensor> parts{query, key, value};
  for (const auto& [name, x] : {std::pair{"query", query}, std::pair{"key", key}, std::pair{"value", value}})
    check_rows(name, x, query);
  const std::int64_t batch = query.shape()[0], shared = heads / groups;
  const std::int64_t width = divided("query", query, heads), value_width = divided("value", value, groups);
  require(divided("key", key, groups) == width, linear_attention_op, ": the heads of query, ", query.spec(),
          ", and key, ", key.spec(), ", differ in width");
  const auto add = [&](std::string_view name, const Tensor& x, std::int64_t some, std::int64_t others) {
    if (!x.defined()) return;
    check_rows(name, x, query);
    require(x.shape()[2] == some || x.shape()[2] == others, linear_attention_op, ": ", name, " is ", x.spec(),
            ", expected ", some, " or ", others, " numbers a place");
    parts.push_back(x);
  };
  add("decay", options.decay, groups, groups * width);
  add("beta", options.beta, groups, 1);

  const DType t = computed_in(query.dtype());
  const Shape state_shape{batch, groups, width, value_width};
  require(!options.past_state.defined() || options.past_state.shape() == state_shape, linear_attention_op,
          ": past_state is ", options.past_state.defined() ? text(options.past_state.spec()) : "", ", expected ",
          brackets(state_shape));
  const Tensor first = options.past_state.defined() ? cast(options.past_state, t) : fill(state_shape, 0, t);
  const double scale = options.scale.value_or(1 / std::sqrt(static_cast<double>(std::max<std::int64_t>(width, 1))));
  const auto step = [&](In in) {
    Tensor state = in[0];
    AttentionParts row(in[1]);
    const Tensor q = row.next(heads * width, {batch, groups, shared, width});
    const Tensor k = row.next(groups * width, {batch, groups, 1, width});
    Tensor v = row.next(groups * value_width, {batch, groups, 1, value_width});
    if (options.decay.defined()) {
      const std::int64_t columns = options.decay.shape()[2];
      state = state * exp(row.next(columns, {batch, groups, columns / groups, 1}));
    }
    if (options.beta.defined()) {
      const std::int64_t columns = options.beta.shape()[2];
      v = row.next(columns, {batch, columns, 1, 1}) * (v - matmul(k, state));
    }
    state = state + transpose(k) * v;
    return Tensors{state, reshape(matmul(q, state) * scale, {batch, heads * value_width})};
  };
  const Tensor rows = transpose(cast(concat(parts, -1), t), {1, 0, 2});
  const Tensors results = detail::scan(step, {&first, 1}, rows);
  return {cast(transpose(results[1], {1, 0, 2}), query.dtype()),
          cast(results[0], options.past_state.defined() ? options.past_state.dtype() : query.dtype())};
}

}  // namespace gradus
