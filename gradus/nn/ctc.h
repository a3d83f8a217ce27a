/// Connectionist temporal classification by lengths, as in keras.ops: the loss of given labels, and the most likely
/// labels. CTC (nn/class_losses.h) is the Loss for training.
#pragma once
#include "gradus/base/ranges.h"
#include "gradus/graph/tensor.h"

namespace gradus {

/// Options of ctc_loss.
struct CtcLossOptions {
  std::int64_t mask_index = 0;  // the class of the blank
  static constexpr auto ranges() { return std::array{Allowed::not_negative("mask_index")}; }
};
/// -log of the probability that the logits `output` [batch, time, classes] give to the labels `target`, integers
/// [batch, length], under all alignments (Graves et al. 2006): [batch]. target_length and output_length, integers
/// [batch], are the numbers of labels and of steps of each row. Infinite if the labels do not fit into the steps. A
/// class outside of the logits is an OutOfRange when the value is observed.
Tensor ctc_loss(const Tensor& target, const Tensor& output, const Tensor& target_length, const Tensor& output_length,
                CtcLossOptions options = {});

/// Methods of the search for labels. greedy: the most likely class of each step. beam_search: prefixes by the sum of
/// all their alignments, the best beam_width of each step.
enum class CtcStrategy { greedy, beam_search };
/// Options of ctc_decode.
struct CtcDecodeOptions {
  CtcStrategy strategy = CtcStrategy::greedy;  // method of the search
  std::int64_t beam_width = 100;               // prefixes that are kept; of beam_search
  std::int64_t top_paths = 1;                  // labelings in the result, at most beam_width; of beam_search
  bool merge_repeated = true;                  // equal neighbours are one label; of greedy
  std::int64_t mask_index = 0;                 // the class of the blank
  static constexpr auto ranges() {
    return std::array{Allowed::positive("beam_width top_paths"), Allowed::not_negative("mask_index")};
  }
};
/// Result of ctc_decode.
struct CtcDecoded {
  Tensor decoded;  // i32 [top_paths, batch, time]: labels, the best ones first, then -1
  Tensor scores;   // [batch, top_paths]; greedy: minus the sum of the largest logits; beam_search: log probabilities
};
/// The most likely labels of logits [batch, time, classes], of which the first sequence_lengths[row] steps count.
/// `greedy` has one path. Among equally likely labelings, the one of the lower class comes first. Labels past the last
/// possible one are -1, with a score of -infinity where there are fewer labelings than top_paths. The labels have no
/// gradient; the scores have one. InvalidArgument for other shapes or dtypes and for top_paths above beam_width (above
/// 1 with `greedy`); OutOfRange for a beam_width above 2^20.
CtcDecoded ctc_decode(const Tensor& inputs, const Tensor& sequence_lengths, CtcDecodeOptions options = {});

}  // namespace gradus
