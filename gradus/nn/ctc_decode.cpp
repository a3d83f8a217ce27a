/// Decoding of connectionist temporal classification: greedily, and by a search of prefixes as a scan over time.
#include <array>
#include <limits>
#include "gradus/nn/class_losses.h"
#include "gradus/nn/ctc.h"
#include "gradus/nn/loss_parts.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/control_ops.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/indexing.h"
#include "gradus/ops/layout.h"
#include "gradus/ops/masked_rows.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/philox.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/softmax.h"
#include "gradus/ops/sort.h"
#include "gradus/ops/special.h"
#include "gradus/ops/widened.h"

namespace gradus {
namespace {

constexpr double impossible = -std::numeric_limits<double>::infinity();
constexpr std::int32_t no_label = -1;

void require_lengths(std::string_view op, std::string_view name, const Tensor& lengths, const Tensor& of) {
  require(is_integer(lengths.dtype()) && lengths.shape() == Shape{of.shape()[0]}, op, ": ", name, " is ",
          lengths.spec(), ", expected integers [batch], one for each row of ", of.spec());
}

void require_step_logits(std::string_view op, const Tensor& logits, std::int64_t blank) {
  check_classes(op, logits);
  require(logits.shape().rank() == 3, op, ": the logits are ", logits.spec(), ", expected [batch, time, classes]");
  const std::int64_t classes = logits.shape()[2];
  require(classes >= 0, op, ": the number of classes of ", logits.spec(), " is not known when tracing");
  require(blank < classes, op, ": mask_index ", blank, " is no class of ", logits.spec());
}

/// bool [batch, time]: the steps that count.
Tensor counted_steps(const Tensor& lengths, const Tensor& logits) { return sequence_mask(lengths, logits.shape()[1]); }

CtcDecoded decode_greedily(const Tensor& logits, const Tensor& counts, const CtcDecodeOptions& options) {
  const std::int64_t batch = logits.shape()[0], time = logits.shape()[1];
  const Tensor best = argmax(logits, -1), blank = fill_like(best, options.mask_index);
  const Tensor classes = where(counts, best, blank);  // [batch, time]
  Tensor emits = not_equal(classes, blank);
  if (options.merge_repeated) {
    const Tensor before =
        concat({fill({batch, 1}, no_label, i32), slice_within(classes, 1, 0, dimension::subtract(time, 1))}, 1);
    emits = logical_and(emits, not_equal(classes, before));
  }
  const Tensor place = broadcast_to(iota({time}, i32), classes.shape());
  const Tensor order = argsort(where(emits, place, fill_like(place, std::numeric_limits<std::int32_t>::max())), 1);
  const Tensor labels = take_along_axis(where(emits, classes, fill_like(classes, no_label)), order, 1);
  const Tensor largest = reduce_max(logits, {.axis = {2}});
  const Tensor score = -reduce_sum(where(counts, largest, zeros_like(largest)), {.axis = {1}, .keepdims = true});
  return {expand_dims(labels, 0), score};
}

/// The prefixes of a row that are kept: [batch, beams] each. A place without a prefix has probability 0, no label, and
/// a name that no prefix has.
struct Beams {
  Tensor by_blank, by_label;     // log of the probability of alignments that end with a blank, or with the last label
  Tensor last, length;           // i32: the last label, or -1; the number of labels
  Tensor name, second_name;      // i64: 2 x 53 bits of the labels
  Tensor parent, second_parent;  // the names without the last label
  Tensor labels;                 // i32 [batch, beams, time]

  explicit Beams(In all)
      : by_blank(all[0]),
        by_label(all[1]),
        last(all[2]),
        length(all[3]),
        name(all[4]),
        second_name(all[5]),
        parent(all[6]),
        second_parent(all[7]),
        labels(all[8]) {}
  static constexpr std::size_t fields = 9;
  Tensors all() const { return {by_blank, by_label, last, length, name, second_name, parent, second_parent, labels}; }
  Tensor total() const { return logaddexp(by_blank, by_label); }

  /// The empty prefix, and places without one.
  static Beams first(std::int64_t batch, std::int64_t beams, std::int64_t time, DType dtype) {
    const Shape shape{batch, beams};
    const Tensor is_empty = equal(broadcast_to(iota({beams}, i32), shape), 0);
    const Tensor none = fill(shape, impossible, dtype), no_name = fill(shape, -1, i64);
    const Tensor name = where(is_empty, fill(shape, 1, i64), no_name);
    return Beams(Tensors{where(is_empty, zeros_like(none), none), none, fill(shape, no_label, i32), fill(shape, 0, i32),
                         name, name, no_name, no_name, fill({batch, beams, time}, no_label, i32)});
  }
};

Tensor columns(const Tensor& x) { return expand_dims(x, 2); }  // [batch, beams] -> [batch, beams, 1]
Tensor rows(const Tensor& x) { return expand_dims(x, 1); }     // [batch, beams] -> [batch, 1, beams]

/// The prefixes after a step with the log probabilities log_p: [batch, classes].
Beams after_step(const Beams& before, const Tensor& log_p, std::int64_t blank) {
  const Shape& shape = before.last.shape();
  const std::int64_t batch = shape[0], beams = shape[1], classes = log_p.shape()[1];
  const Tensor none = fill(shape, impossible, log_p.dtype()), total = before.total();
  const Tensor has_label = before.last >= 0, label = maximum(before.last, 0);
  const Tensor of_last = where(has_label, take_along_axis(log_p, label, 1), none);  // [batch, beams]
  // A prefix stays by a blank or its last label. It also grows out of its parent, if that is kept.
  const Tensor is_parent = logical_and(broadcast_to(rows(has_label), {batch, beams, beams}),
                                       logical_and(equal(columns(before.name), rows(before.parent)),
                                                   equal(columns(before.second_name), rows(before.second_parent))));
  const Tensor from = where(equal(columns(before.last), rows(before.last)), columns(before.by_blank), columns(total));
  const Tensor grown = reduce_max(where(is_parent, from, fill_like(from, impossible)), {.axis = {1}}) + of_last;
  const Tensor stays_by_blank = total + slice_within(log_p, 1, blank, 1);
  const Tensor stays_by_label = logaddexp(before.by_label + of_last, grown);
  // New prefixes: each one with each label, except those that are kept already.
  const Tensor number = broadcast_to(iota({classes}, i32), {batch, beams, classes});
  const Tensor repeats = equal(number, columns(before.last));
  const Tensor extended = where(repeats, columns(before.by_blank), columns(total)) + rows(log_p);
  const Tensor is_kept = matmul(cast(is_parent, f32), cast(equal(number, columns(before.last)), f32)) > 0.5;
  const Tensor is_new = logical_not(logical_or(is_kept, equal(number, fill_like(number, blank))));
  const Tensor candidates = concat(
      {logaddexp(stays_by_blank, stays_by_label),
       reshape(where(is_new, extended, fill_like(extended, impossible)), {batch, dimension::multiply(beams, classes)})},
      1);
  const TopK best = top_k(candidates, beams);
  const auto width = static_cast<std::int32_t>(beams);
  const Tensor stays = best.indices < width, place = maximum(best.indices - width, 0);
  const Tensor origin = where(stays, best.indices, floor_divide(place, static_cast<std::int32_t>(classes)));
  const Tensor added = mod(place, static_cast<std::int32_t>(classes));
  const Tensor is_none = equal(best.values, none);
  const auto of = [&](const Tensor& x) { return take_along_axis(x, origin, 1); };
  const auto kept_or = [&](const Tensor& kept, const Tensor& fresh, double nothing) {
    return where(is_none, fill_like(fresh, nothing), where(stays, kept, fresh));
  };
  const Tensor name = of(before.name), second = of(before.second_name), wide = cast(added, i64);
  const Tensor length = of(before.length), labels = gather(before.labels, origin, 1, 1);
  const Tensor at = broadcast_to(iota({labels.shape()[2]}, i32), labels.shape());
  const Tensor is_end = logical_and(equal(at, columns(length)), columns(logical_not(stays)));
  const Tensor longer = where(is_end, broadcast_to(columns(added), labels.shape()), labels);
  return Beams(Tensors{kept_or(of(stays_by_blank), none, impossible),
                       kept_or(of(stays_by_label), best.values, impossible), kept_or(of(before.last), added, no_label),
                       kept_or(length, length + 1, 0), kept_or(name, philox(wide, name, 0), -1),
                       kept_or(second, philox(wide, second, 1), -1), kept_or(of(before.parent), name, -1),
                       kept_or(of(before.second_parent), second, -1),
                       where(broadcast_to(columns(is_none), labels.shape()), fill_like(labels, no_label), longer)});
}

CtcDecoded decode_by_beams(const Tensor& logits, const Tensor& counts, const CtcDecodeOptions& options) {
  const Tensor log_p = log_softmax(widened(logits));
  const Beams first = Beams::first(logits.shape()[0], options.beam_width, logits.shape()[1], log_p.dtype());
  const auto step = [&](In in) {
    const Beams before(in.first(Beams::fields));
    const Tensors next = after_step(before, in[Beams::fields], options.mask_index).all(), old = before.all();
    Tensors state;
    for (std::size_t i = 0; i < next.size(); ++i) state.push_back(choose_rows(in[Beams::fields + 1], next[i], old[i]));
    return state;
  };
  const Tensors state = first.all();
  const Beams last(
      scan_together("ctc_decode", step, state, std::array{transpose(log_p, {1, 0, 2}), transpose(counts)}));
  const Tensor labels = slice_within(last.labels, 1, 0, options.top_paths);
  return {transpose(labels, {1, 0, 2}), cast(slice_within(last.total(), 1, 0, options.top_paths), logits.dtype())};
}

}  // namespace

Tensor ctc_loss(const Tensor& target, const Tensor& output, const Tensor& target_length, const Tensor& output_length,
                CtcLossOptions options) {
  constexpr std::string_view op = "ctc_loss";
  check_options(op, options);
  require_step_logits(op, output, options.mask_index);
  require(is_integer(target.dtype()) && target.shape().rank() == 2 && target.shape()[0] == output.shape()[0], op,
          ": the target is ", target.spec(), ", expected integer labels [batch, length] beside ", output.spec());
  require_lengths(op, "target_length", target_length, target);
  require_lengths(op, "output_length", output_length, output);
  const Tensor is_label = sequence_mask(target_length, target.shape()[1]);
  const Tensor labels = where(is_label, target, fill_like(target, options.mask_index));
  return ctc(labels, output, {.mask_index = options.mask_index, .mask = counted_steps(output_length, output)});
}

CtcDecoded ctc_decode(const Tensor& inputs, const Tensor& sequence_lengths, CtcDecodeOptions options) {
  constexpr std::string_view op = "ctc_decode";
  check_options(op, options);
  require_step_logits(op, inputs, options.mask_index);
  require_lengths(op, "sequence_lengths", sequence_lengths, inputs);
  require(options.top_paths <= (options.strategy == CtcStrategy::greedy ? 1 : options.beam_width), op,
          ": top_paths is ", options.top_paths, ", expected at most ",
          options.strategy == CtcStrategy::greedy ? 1 : options.beam_width,
          options.strategy == CtcStrategy::greedy ? "; the strategy greedy finds one labeling" : ", the beam_width");
  require<OutOfRange>(options.beam_width <= 1 << 20, op, ": beam_width ", options.beam_width,
                      ", expected 2^20 at most");
  const Tensor counts = counted_steps(sequence_lengths, inputs);
  return options.strategy == CtcStrategy::greedy ? decode_greedily(inputs, counts, options)
                                                 : decode_by_beams(inputs, counts, options);
}

}  // namespace gradus
