/// ONNX's attention and rotary embeddings.
#include "gradus/onnx/row.h"
#include "gradus/ops/attention.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/linear_attention.h"
#include "gradus/ops/softmax.h"

namespace gradus::onnx {
namespace {

/// [batch, time, heads * width] with the number of heads, or [batch, heads, time, width] as it is.
Tensor with_heads(const Call& c, int input, std::string_view heads) {
  const Tensor& x = c[input];
  if (x.shape().rank() == 4) return x;
  c.require(x.shape().rank() == 3, "input ", input, " is ", x.spec(), ", it must have 3 or 4 dimensions");
  return split_heads(x, c.integer(heads));
}

/// Y, present_key, present_value, qk_matmul_output. No softmax is computed in less than f32.
Results attention(const Call& c) {
  const bool joined = c[0].shape().rank() == 3;
  DotProductAttentionOptions options{.mask = c.optional(3),
                                     .causal = c.flag("is_causal"),
                                     .softcap = c.number("softcap", 0),
                                     .past_key = c.optional(4),
                                     .past_value = c.optional(5),
                                     .key_lengths = c.version() >= 24 ? c.optional(6) : Tensor()};
  if (c.has_attribute("scale")) options.scale = c.number("scale");
  if (c.has_attribute("softmax_precision")) options.softmax_dtype = computed_in(c.dtype("softmax_precision", f32));
  if (c.version() >= 25) {
    options.left_window = c.integer("left_window_size", -1);
    options.right_window = c.integer("right_window_size", -1);
  }
  if (options.mask.defined() && options.mask.dtype() != boolean) options.mask = cast(options.mask, c[0].dtype());
  const AttentionSteps steps = attention_steps(with_heads(c, 0, "q_num_heads"), with_heads(c, 1, "kv_num_heads"),
                                               with_heads(c, 2, "kv_num_heads"), options);
  const std::int64_t mode = c.integer("qk_matmul_output_mode", 0);
  c.require(mode >= 0 && mode <= 3, "qk_matmul_output_mode is ", mode, ", it must be 0 to 3");
  const Tensor shown[] = {steps.scores, steps.capped, steps.masked, steps.weights};
  return {joined ? join_heads(steps.output) : steps.output, steps.present_key, steps.present_value, shown[mode]};
}

Results rotary(const Call& c) {
  const Tensor x = with_heads(c, 0, "num_heads");
  const Tensor y = rotary_embedding(x, c[1], c[2],
                                    {.positions = c.optional(3),
                                     .interleaved = c.flag("interleaved"),
                                     .width = c.integer("rotary_embedding_dim", 0)});
  return c[0].shape().rank() == 3 ? join_heads(y) : y;
}

/// The graphs change scores and weights in the type of the softmax.
Results flex_attention(const Call& c) {
  const Tensor q = wide(c[0]), k = wide(c[1]), v = wide(c[2]);
  const DType t = c.dtype("softmax_precision", q.dtype());
  DotProductAttentionOptions options;
  if (c.has_attribute("scale")) options.scale = c.number("scale");
  Tensor scores = cast(attention_steps(q, k, v, options).scores, t);
  const auto modified = [&](std::string_view name, const Tensor& x) {
    if (!c.has_attribute(name)) return x;
    const Tensors results = c.run(c.graph(name), {&x, 1});
    c.require(results.size() == 1 && results[0].shape() == x.shape(), "the graph ", name,
              " must give one tensor of the shape that it takes, ", x.spec());
    return cast(results[0], t);
  };
  scores = modified("score_mod", scores);
  const Tensor weights = wide(modified("prob_mod", softmax(scores)));
  return cast(weighted_values(weights, cast(v, weights.dtype())), c[2].dtype());
}

/// The inputs decay and beta depend on update_rule: linear, gated, delta or gated_delta.
Results linear_attention_node(const Call& c) {
  const std::string rule = c.word("update_rule", "gated_delta");
  c.require(rule == "linear" || rule == "gated" || rule == "delta" || rule == "gated_delta", "update_rule is `", rule,
            "`, it must be linear, gated, delta or gated_delta");
  c.require(c.has(4) == rule.starts_with("gated"), "the input decay belongs to gated rules, the rule is ", rule);
  c.require(c.has(5) == rule.ends_with("delta"), "the input beta belongs to delta rules, the rule is ", rule);
  LinearAttentionOptions options{.heads = c.integer("q_num_heads"),
                                 .key_heads = c.integer("kv_num_heads"),
                                 .past_state = c.optional(3),
                                 .decay = c.optional(4),
                                 .beta = c.optional(5)};
  for (Tensor* gate : {&options.decay, &options.beta})
    if (gate->defined()) *gate = cast(*gate, c[0].dtype());
  if (const double scale = c.number("scale", 0); scale != 0) options.scale = scale;
  const LinearAttentionResult result = linear_attention(c[0], c[1], c[2], options);
  return {result.output, result.state};
}

const Table attentions_table{
    {"Attention", {23, 24, 25}, rounded_once(attention, {0, 1, 2, 0})},
    {"FlexAttention", {1}, flex_attention, "ai.onnx.preview"},
    {"LinearAttention", {27}, rounded_once(linear_attention_node, {0, 3})},
    {"RotaryEmbedding", {23}, rounded_once(rotary)},
};

}  // namespace
}  // namespace gradus::onnx
