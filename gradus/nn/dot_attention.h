/// Attention without projections, with Keras's defaults: queries [batch, queries, width] attend to keys and values
/// [batch, keys, width].
#pragma once
#include <string>
#include "gradus/base/ranges.h"
#include "gradus/nn/module.h"

namespace gradus {

/// Score of a query and a key: their product, or a sum of tanh.
enum class ScoreMode { dot, concat };
/// Options of Attention.
struct DotAttentionOptions {
  bool use_scale = false;                 // multiply the scores by a variable that starts at 1
  ScoreMode score_mode = ScoreMode::dot;  // concat: sum(tanh(scale * (q + k))), times another variable
  double dropout = 0;                     // share of the weights that is dropped in training
  bool causal = false;                    // queries do not see keys after their place
  std::string name = {};                  // empty: by its class
  static constexpr auto ranges() { return std::array{Allowed::share_below_one("dropout")}; }
};
/// Options of AdditiveAttention.
struct AdditiveAttentionOptions {
  bool use_scale = true;  // a variable [width], glorot_uniform
  double dropout = 0;     // share of the weights that is dropped in training
  bool causal = false;    // queries do not see keys after their place
  std::string name = {};  // empty: by its class
  static constexpr auto ranges() { return std::array{Allowed::share_below_one("dropout")}; }
};

/// Base of both. Masks of earlier layers apply: masked places of the value are hidden. Masked queries, and queries
/// whose keys are all hidden, give 0; their mask is passed on. The first call builds.
struct AttentionModule : Module {
  using Module::Module;
  using Module::operator();  // attention(x): self-attention
  /// Attention with the value as key.
  Tensor operator()(const Tensor& query, const Tensor& value) const;
  /// Arguments in Keras's order.
  Tensor operator()(const Tensor& query, const Tensor& value, const Tensor& key) const;
};
/// Dot-product attention softmax(q k') v (Luong et al. 2015). The scores are not divided by the root of the width.
struct Attention : AttentionModule {
  Attention() : Attention(DotAttentionOptions()) {}
  explicit Attention(DotAttentionOptions options);
};
/// Additive attention softmax(sum(scale * tanh(q + k))) v (Bahdanau et al. 2014).
struct AdditiveAttention : AttentionModule {
  AdditiveAttention() : AdditiveAttention(AdditiveAttentionOptions()) {}
  explicit AdditiveAttention(AdditiveAttentionOptions options);
};

}  // namespace gradus
