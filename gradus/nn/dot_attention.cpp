/// Scores of queries and keys, and the weighted values.
#include "gradus/nn/dot_attention.h"
#include <array>
#include "gradus/function/trace.h"
#include "gradus/graph/scope.h"
#include "gradus/nn/cloned.h"
#include "gradus/nn/initializers.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/random.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/softmax.h"

namespace gradus {
namespace {

struct ScoreLayer final : Cloned<ScoreLayer> {
  ScoreLayer(bool is_additive, DotAttentionOptions o) : additive(is_additive), options(std::move(o)) {
    check_options(kind(), options);
  }
  std::string_view kind() const override { return additive ? "additive_attention" : "attention"; }
  void build(const Spec& input) override { build_for({&input, 1}); }
  void build_for(std::span<const Spec> inputs) override {
    for (const Spec& spec : inputs)
      require(is_floating(spec.dtype) && spec.shape.rank() == 3, kind(), ": the input is ", spec,
              ", expected floats [batch, time, width]");
    const std::int64_t width = inputs[0].shape[2];
    const DType t = inputs[0].dtype;
    require(!additive || !options.use_scale || width > 0, kind(), ": the width of ", inputs[0], " must be known");
    if (options.use_scale)
      add_variable("scale", additive ? cast(initializers::glorot_uniform({width}), t) : ones({}, t));
    if (options.score_mode == ScoreMode::concat) add_variable("concat_score_weight", ones({}, t));
  }
  Tensor call(const Tensor& x) const override { return attend(x, x, x, {}, {}); }
  Tensor call_masked(const Tensor& x, const Tensor& mask) const override { return attend(x, x, x, mask, mask); }
  Tensor compute_mask(const Tensor&, const Tensor& mask) const override { return mask; }
  bool looks_at_places() const override { return true; }

  Tensor attend(const Tensor& query, const Tensor& value, const Tensor& key, const Tensor& of_query,
                const Tensor& of_value) const {
    const Shape &q = query.shape(), &k = key.shape(), &v = value.shape();
    require(q.rank() == 3 && k.rank() == 3 && v.rank() == 3 && q[2] == k[2] && k[1] == v[1], kind(), " ", name(),
            ": the query is ", query.spec(), ", the key ", key.spec(), ", the value ", value.spec(),
            ": expected [batch, queries, width], [batch, keys, width] and [batch, keys, ...]");
    Tensor seen;
    if (of_value.defined()) seen = expand_dims(spread_mask(of_value, {v[0], v[1]}), 1);
    if (options.causal) {
      const Tensor before = expand_dims(range(q[1]), 1) >= range(k[1]);
      seen = seen.defined() ? logical_and(seen, before) : before;
    }
    const Tensor scores = scores_of(query, key);
    const Tensor weights = seen.defined() ? masked_softmax(scores, seen, -1) : softmax(scores);
    const Tensor result = matmul(with_dropout(weights), value);
    if (!of_query.defined()) return result;
    return where(expand_dims(spread_mask(of_query, {q[0], q[1]}), -1), result, fill_like(result, 0));
  }

  bool additive;
  DotAttentionOptions options;
  using Layer::note_lost_mask;
  using Layer::note_result;

 protected:
  Tensor call_on(In inputs) const override { return attend(inputs[0], inputs[1], inputs[2], {}, {}); }

 private:
  /// [batch, queries, keys]
  Tensor scores_of(const Tensor& query, const Tensor& key) const {
    if (!additive && options.score_mode == ScoreMode::dot) {
      const Tensor scores = matmul(query, transpose(key));
      return options.use_scale ? scores * parameter(0) : scores;
    }
    const Tensor sums = expand_dims(query, 2) + expand_dims(key, 1);
    if (additive) return reduce_sum(options.use_scale ? parameter(0) * tanh(sums) : tanh(sums), {.axis = {-1}});
    return parameter(own_count() - 1) *
           reduce_sum(tanh(options.use_scale ? parameter(0) * sums : sums), {.axis = {-1}});
  }
  Tensor with_dropout(const Tensor& weights) const {
    if (options.dropout > 0) warn_if_mode_unsaid("the dropout of an attention");
    if (options.dropout == 0 || !is_training()) return weights;
    const Tensor drawn = random::uniform(weights.shape(), {.dtype = computed_in(weights.dtype())});
    return where(drawn < options.dropout, fill_like(weights, 0), weights * (1 / (1 - options.dropout)));
  }
};

}  // namespace

Tensor AttentionModule::operator()(const Tensor& query, const Tensor& value) const {
  return (*this)(query, value, value);
}
Tensor AttentionModule::operator()(const Tensor& query, const Tensor& value, const Tensor& key) const {
  auto& layer = layer_as<ScoreLayer>(*this, "Attention");
  layer.ensure_built(std::array{query.spec(), value.spec(), key.spec()});
  if (Trace* trace = Trace::current()) trace->note_use(this, layer.variables());
  const NameScope scope(layer.name().empty() ? layer.kind() : std::string_view(layer.name()));
  const CallScope call(layer);
  const Tensor q = layer.computed(query), v = layer.computed(value), k = layer.computed(key);
  const Tensor of_query = SequenceMask::of(q);
  for (const Tensor& each : {q, v}) layer.note_lost_mask(each);
  const Tensor y = layer.attend(q, v, k, of_query, SequenceMask::of(v));
  layer.note_result(q, of_query, y);
  return y;
}

Attention::Attention(DotAttentionOptions options)
    : AttentionModule(named(std::make_shared<ScoreLayer>(false, options), options.name)) {}
AdditiveAttention::AdditiveAttention(AdditiveAttentionOptions options)
    : AttentionModule(named(std::make_shared<ScoreLayer>(true, DotAttentionOptions{.use_scale = options.use_scale,
                                                                                   .dropout = options.dropout,
                                                                                   .causal = options.causal}),
                            options.name)) {}

}  // namespace gradus
