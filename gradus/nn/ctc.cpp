/// Connectionist temporal classification: the forward recursion over the labels with blanks around them, in log space,
/// as a scan over time.
#include <array>
#include <limits>
#include "gradus/nn/class_losses.h"
#include "gradus/nn/loss_parts.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/control.h"
#include "gradus/ops/control_ops.h"
#include "gradus/ops/cumulative_ops.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/indexing.h"
#include "gradus/ops/logits.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/softmax.h"
#include "gradus/ops/special.h"

namespace gradus {
namespace {

constexpr double never = -std::numeric_limits<double>::infinity();

/// blank, y[0], blank, y[1] ... blank: i32 [batch, 2 length + 1].
Tensor with_blanks(const Tensor& y, std::int64_t blank) {
  const std::int64_t batch = y.shape()[0], length = y.shape()[1];
  const Tensor blanks = fill({batch, length}, blank, i32);
  const Tensor pairs = reshape(stack({blanks, y}, 2), {batch, dimension::multiply(length, 2)});
  return concat({pairs, fill({batch, 1}, blank, i32)}, 1);
}

/// log_p: [batch, time, classes], states: [batch, n] -> [time, batch, n]
Tensor of_states(const Tensor& log_p, const Tensor& states) {
  const Shape& shape = states.shape();
  const Tensor rows = broadcast_to(expand_dims(iota({shape[0]}, i32), 1), shape);
  const Tensor by_class = transpose(log_p, {0, 2, 1});  // [batch, classes, time]
  return transpose(gather_nd(by_class, stack({rows, states}, 2)), {2, 0, 1});
}

/// bool [batch, time]: the steps that count, by the option or the prediction's own mask; empty: all.
Tensor steps_that_count(std::string_view op, const Tensor& given, const Tensor& prediction) {
  const Shape places{prediction.shape()[0], prediction.shape()[1]};
  if (!given.defined()) return spread_mask(SequenceMask::of(prediction), places);
  require(given.spec() == Spec{boolean, places}, op, ": the mask is ", given.spec(), ", expected ",
          Spec{boolean, places}, " beside ", prediction.spec());
  return given;
}

}  // namespace

Tensor ctc(const Tensor& y, const Tensor& prediction, CtcOptions options) {
  constexpr std::string_view op = "ctc";
  check_classes(op, prediction);
  require(prediction.shape().rank() == 3, op, ": the prediction is ", prediction.spec(),
          ", expected logits [batch, time, classes]");
  require(is_integer(y.dtype()) && y.shape().rank() == 2 && y.shape()[0] == prediction.shape()[0], op, ": y is ",
          y.spec(), ", expected integer labels [batch, length] beside ", prediction.spec());
  require(prediction.shape()[1] != 0, op, ": the prediction ", prediction.spec(), " has no time step");
  const std::int64_t classes = prediction.shape()[2];
  require(options.mask_index >= 0 && (classes < 0 || options.mask_index < classes), op, ": mask_index ",
          options.mask_index, " is no class of ", prediction.spec());
  const Tensor mask = steps_that_count(op, options.mask, prediction);
  const Tensor logits = mask.defined() ? where(broadcast_to(expand_dims(mask, 2), prediction.shape()), prediction,
                                               fill_like(prediction, 0))
                                       : prediction;
  const Tensor states = with_blanks(cast(y, i32), options.mask_index);  // [batch, n]
  const Tensor emitted = of_states(log_shares(logits), states);         // [time, batch, n]
  const Tensor blank = fill_like(states, options.mask_index);
  const Tensor before_last =
      moved_by_one(moved_by_one(states, 1, options.mask_index, false), 1, options.mask_index, false);
  const Tensor may_skip = logical_and(not_equal(states, blank), not_equal(states, before_last));
  const Tensor place = broadcast_to(iota({states.shape()[1]}, i32), states.shape());
  const Tensor nothing = fill(states.shape(), never, prediction.dtype());
  const auto after = [&](const Tensor& alpha, const Tensor& row) {
    const Tensor one = moved_by_one(alpha, 1, never, false), two = moved_by_one(one, 1, never, false);
    return logaddexp(logaddexp(alpha, one), where(may_skip, two, nothing)) + row;
  };
  const auto last_of_all = [&] {
    const auto step = [&](const Tensor& alpha, const Tensor& row) {
      return std::pair{after(alpha, row), reduce_sum(zeros_like(row))};
    };
    // The first step reaches the first blank and the first label.
    const Tensor first = where(place < 2, emitted[0], nothing);
    const std::int64_t time = prediction.shape()[1];
    return scan(step, first, slice_within(emitted, 0, 1, dimension::subtract(time, 1))).first;
  };
  // A step that does not count leaves all as it is. Before the first that counts, only the first blank's place is
  // reached.
  const auto last_of_counted = [&](const Tensor& counts) {  // bool [time, batch]
    const auto step = [&](In in) {
      const Tensor &alpha = in[0], &row = in[1];
      return Tensors{where(broadcast_to(expand_dims(in[2], 1), row.shape()), after(alpha, row), alpha)};
    };
    const Tensor begin = where(place < 1, fill_like(nothing, 0), nothing);
    return scan_together(op, step, {&begin, 1}, std::array{emitted, counts})[0];
  };
  const Tensor last = mask.defined() ? last_of_counted(transpose(mask)) : last_of_all();
  const Tensor length = reduce_sum(cast(not_equal(y, fill_like(y, options.mask_index)), i32), {.axis = {1}});
  const Tensor end = broadcast_to(expand_dims(length * 2, 1), states.shape());
  const Tensor ends = logical_or(equal(place, end), equal(place, end - 1));
  return -reduce_logsumexp(where(ends, last, nothing), {.axis = {1}});
}

}  // namespace gradus
