/// Attention without projections, with Keras's defaults: of queries [batch, queries, width] to keys and values
/// [batch, keys, width].
#pragma once
#include <string>
#include "gradus/base/ranges.h"
#include "gradus/nn/module.h"

namespace gradus {

enum class ScoreMode { dot, concat };
struct DotAttentionOptions {
  bool use_scale = false;                 // a variable that starts at 1, times the scores
  ScoreMode score_mode = ScoreMode::dot;  // concat: sum(tanh(scale * (q + k))), times another variable
  double dropout = 0;                     // of the weights, in training
  bool causal = false;                    // no query looks at keys after its place
  std::string name = {};
  static constexpr auto ranges() { return std::array{Allowed::share_below_one("dropout")}; }
};
struct AdditiveAttentionOptions {
  bool use_scale = true;  // a variable [width], glorot_uniform
  double dropout = 0;
  bool causal = false;
  std::string name = {};
  static constexpr auto ranges() { return std::array{Allowed::share_below_one("dropout")}; }
};

/// What both have in common. Masks that the layers before gave their results hold: places of the value that do not
/// count are not looked at; queries that do not count, or that nothing is left for to look at, give 0; their mask is
/// handed on. The first call builds.
struct AttentionModule : Module {
  using Module::Module;
  using Module::operator();  // attention(x): to itself
  Tensor operator()(const Tensor& query, const Tensor& value) const;
  /// In Keras's order.
  Tensor operator()(const Tensor& query, const Tensor& value, const Tensor& key) const;
};
/// softmax(q k') v (Luong et al. 2015); the scores are not divided by the root of the width.
struct Attention : AttentionModule {
  Attention() : Attention(DotAttentionOptions()) {}
  explicit Attention(DotAttentionOptions options);
};
/// softmax(sum(scale * tanh(q + k))) v (Bahdanau et al. 2014).
struct AdditiveAttention : AttentionModule {
  AdditiveAttention() : AdditiveAttention(AdditiveAttentionOptions()) {}
  explicit AdditiveAttention(AdditiveAttentionOptions options);
};

}  // namespace gradus
