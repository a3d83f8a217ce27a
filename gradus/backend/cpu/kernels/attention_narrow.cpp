/// Attention of bf16: products of pairs, whose sums are f32, and a softmax in f32. Values rounded for the next product
/// take the place of their sources.
#include <cstring>
#include "gradus/backend/cpu/kernels/attention_rows.h"

namespace gradus::library::attention {
NarrowWorker::NarrowWorker(const KernelArguments* arguments, const Call& call)
    : c_(call), rows_(row_functions()), slots_(arguments->slots) {
  products_ = static_cast<std::byte*>(arguments->scratch);
  weights_ = reinterpret_cast<float*>(products_ + c_.product_scratch);
  gradients_ = weights_ + c_.keys * block_queries;
  keys_ = reinterpret_cast<std::uint16_t*>(c_.is_forward() ? gradients_ : gradients_ + c_.keys * block_queries);
  values_ = keys_ + round_up(c_.keys * c_.width, 2);
  by_keys_ = reinterpret_cast<float*>(values_ + round_up(c_.keys * c_.value_width, 2));
  by_values_ = by_keys_ + c_.keys * c_.width;
}

std::int64_t NarrowWorker::scratch_bytes(const Call& c) {
  const std::int64_t widths = c.width + c.value_width, sums = c.is_forward() ? 0 : widths;
  const std::int64_t a_key = (c.is_forward() ? 1 : 2) * block_queries + sums;
  return c.product_scratch + c.keys * (a_key * std::int64_t{sizeof(float)} + widths * std::int64_t{sizeof(bfloat16)}) +
         68;
}

void NarrowWorker::forward(std::int64_t unit) {
  const std::int64_t chunk = unit % c_.chunks(), head = unit / c_.chunks() % c_.heads;
  const std::int64_t batch = unit / (c_.chunks() * c_.heads),
                     last = std::min(c_.queries, (chunk + 1) * queries_at_once);
  gather_keys(c_, slots_, batch, head / c_.group(), c_.keys_before(last), keys_, values_);
  for (std::int64_t i = chunk * queries_at_once; i < last; i += block_queries) {
    const Block block = c_.block(i, last);
    find_weights(batch, head, block, true);
    run(c_.of_queries(block, c_.value_width), weights_, values_,
        static_cast<std::uint16_t*>(slots_[c_.result]) + ((batch * c_.queries + i) * c_.heads + head) * c_.value_width);
  }
}

void NarrowWorker::backward(std::int64_t unit) {
  const std::int64_t batch = unit / c_.key_heads, key_head = unit % c_.key_heads;
  auto* const by_queries = static_cast<std::uint16_t*>(slots_[c_.result]) + batch * c_.elements_of_example();
  gather_keys(c_, slots_, batch, key_head, c_.keys, keys_, values_);
  std::fill_n(by_keys_, c_.keys * (c_.width + c_.value_width), 0.0f);
  for (std::int64_t head = key_head * c_.group(); head < (key_head + 1) * c_.group(); ++head)
    for (std::int64_t i = 0; i < c_.queries; i += block_queries) {
      const Block block = c_.block(i, c_.queries);
      const std::uint16_t* const queries = rows_of_queries(c_.query, batch, head, i, c_.width);
      const std::uint16_t* const dy = rows_of_queries(c_.cotangent, batch, head, i, c_.value_width);
      find_weights(batch, head, block, false);
      run(c_.scores(block, c_.value_width), values_, dy, gradients_);
      rows_.differentiate_narrow(weights_, gradients_, block.keys, c_.diagonal(i, block.keys),
                                 static_cast<float>(c_.scale));
      run(c_.of_keys(block, c_.value_width, c_.heads * c_.value_width), weights_, dy, by_values_);
      run(c_.of_keys(block, c_.width, c_.heads * c_.width), gradients_, queries, by_keys_);
      run(c_.of_queries(block, c_.width), gradients_, keys_, by_queries + (i * c_.heads + head) * c_.width);
    }
  std::uint16_t* const after_queries = by_queries + c_.queries * c_.heads * c_.width;
  round_sums(by_keys_, c_.width, after_queries + key_head * c_.width);
  round_sums(by_values_, c_.value_width, after_queries + c_.keys * c_.key_heads * c_.width + key_head * c_.value_width);
}

/// Rows of sums as rows of bf16 that lie `key_heads` of them apart.
void NarrowWorker::round_sums(const float* sums, std::int64_t width, std::uint16_t* target) const {
  for (std::int64_t j = 0; j < c_.keys; ++j)
    rows_.round_row(sums + j * width, width, target + j * c_.key_heads * width);
}

/// weights_: those of a block, [keys, block_queries]; `rounds`: as rows of bf16.
void NarrowWorker::find_weights(std::int64_t batch, std::int64_t head, const Block& block, bool rounds) {
  const std::int64_t n = block.keys;
  run(c_.scores(block, c_.width), keys_, rows_of_queries(c_.query, batch, head, block.first, c_.width), weights_);
  float factor = static_cast<float>(c_.scale);
  if (c_.mask >= 0 || !(factor > 0)) {
    for (std::int64_t at = 0; at < n * block_queries; ++at) weights_[at] *= factor;
    factor = 1;
  }
  const Sees sees = hide(c_, slots_, weights_, batch, head, block);
  rows_.soften_narrow(weights_, n, c_.diagonal(block.first, n), factor, rounds);
  if (c_.mask < 0) return;
  const std::int64_t size = rounds ? 2 : 4;  // of zeros, whose bits are alike
  for (std::int64_t q = 0; q < block.count; ++q)
    for (std::int64_t j = 0; !sees[static_cast<std::size_t>(q)] && j < n; ++j)
      std::memset(reinterpret_cast<std::byte*>(weights_) + (j * block_queries + q) * size, 0,
                  static_cast<std::size_t>(size));
}

}  // namespace gradus::library::attention
