/// Projections around attention.
#include "gradus/nn/attention.h"
#include <cmath>
#include <limits>
#include <vector>
#include "gradus/function/trace.h"
#include "gradus/graph/scope.h"
#include "gradus/nn/cloned.h"
#include "gradus/nn/initializers.h"
#include "gradus/nn/key_value_cache.h"
#include "gradus/ops/attention.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/shape.h"

namespace gradus {
namespace {

constexpr std::string_view layer = "MultiHeadAttention";

struct AttentionLayer final : Cloned<AttentionLayer> {
  AttentionLayer(std::int64_t h, std::int64_t k, std::int64_t d, AttentionOptions o)
      : heads(h), key_heads(k), key_dim(d), value_dim(o.value_dim.value_or(d)), options(std::move(o)) {
    require(heads > 0 && key_dim > 0 && value_dim > 0, layer, ": heads, key_dim and value_dim must be positive, got ",
            heads, ", ", key_dim, " and ", value_dim);
    require(key_heads > 0 && heads % key_heads == 0, layer, ": ", key_heads,
            " heads of keys and values do not divide the ", heads, " heads of the query");
    check_options(layer, options);
    require(!options.rope_max_wavelength || key_dim % 2 == 0, layer, ": rotary embeddings need an even key_dim, got ",
            key_dim);
  }
  std::string_view kind() const override { return "multi_head_attention"; }
  void build(const Spec& input) override { build_for({&input, 1}); }
  void build_for(std::span<const Spec> inputs) override {
    require(inputs.size() == 1 || inputs.size() == 3, layer, ": it takes one input, or query, key and value, not ",
            inputs.size());
    const Spec &query = inputs[0], &key = inputs.size() == 3 ? inputs[1] : query,
               &value = inputs.size() == 3 ? inputs[2] : query;
    for (const Spec& spec : {query, key, value})
      require(is_floating(spec.dtype) && spec.shape.rank() == 3 && spec.shape[2] >= 0, layer, ": the input is ", spec,
              ", expected floats [batch, time, width] with a known width");
    add_projection("query", query, heads, key_dim);
    add_projection("key", key, key_heads, key_dim);
    add_projection("value", value, key_heads, value_dim);
    const std::int64_t outputs = query.shape[2];
    add_variable("attention_output/kernel",
                 cast(initializers::glorot_uniform({heads, value_dim, outputs}), query.dtype),
                 options.kernel_regularizer);
    if (options.use_bias)
      add_variable("attention_output/bias", zeros({outputs}, query.dtype), options.bias_regularizer);
  }
  Tensor call(const Tensor& x) const override {
    if (KeyValueCache* cache = CallContext::here().cache) return attend_with_cache(*cache, x, {});
    return attend(x, x, x, {});
  }
  Tensor call_masked(const Tensor& x, const Tensor& given) const override {
    const Tensor mask = of_places(given, x);
    if (KeyValueCache* cache = CallContext::here().cache) return attend_with_cache(*cache, x, mask);
    return attend(x, x, x, joint_mask({}, mask, mask));
  }
  /// bool [batch, time]
  static Tensor of_places(const Tensor& mask, const Tensor& x) {
    return spread_mask(mask, {x.shape()[0], x.shape()[1]});
  }
  Tensor compute_mask(const Tensor&, const Tensor& mask) const override { return mask; }
  bool looks_at_places() const override { return true; }
  bool extends_caches() const override { return true; }
  /// `given`, of which what the masks of queries and keys, bool [batch, time], leave out is left out too.
  static Tensor joint_mask(const Tensor& given, const Tensor& of_queries, const Tensor& of_keys) {
    Tensor joint;
    if (of_queries.defined()) joint = expand_dims(expand_dims(of_queries, 1), -1);
    if (of_keys.defined()) {
      const Tensor keys = expand_dims(expand_dims(of_keys, 1), 1);
      joint = joint.defined() ? logical_and(joint, keys) : keys;
    }
    if (!joint.defined() || !given.defined()) return joint.defined() ? joint : given;
    if (given.dtype() == boolean) return logical_and(joint, given);
    return where(joint, given, scalar_like(given, -std::numeric_limits<double>::infinity(), layer));
  }

  Tensor attend(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask) const {
    if (options.dropout > 0) warn_if_mode_unsaid("the dropout of an attention");
    const Tensor q = rotated(project(0, "query", query)), k = rotated(project(1, "key", key));
    const Tensor v = project(2, "value", value);
    return joined(scaled_dot_product_attention(
        q, k, v, {.mask = mask, .causal = options.causal, .dropout = is_training() ? options.dropout : 0}));
  }

  /// Self-attention of the places of this call to those of the cache, too. `mask`: bool [batch, time] of these places.
  Tensor attend_with_cache(KeyValueCache& cache, const Tensor& x, const Tensor& mask) const {
    require(options.causal, layer, " ", name(),
            ": it is not causal, so places before depend on those that follow; make it with {.causal = true}, or call "
            "the model on whole sequences");
    const Tensor q = rotated(project(0, "query", x)), k = rotated(project(1, "key", x)), v = project(2, "value", x);
    const CachedPlaces seen = cache.extended(*this, k, v, mask);
    const Tensor shown = mask.defined() ? logical_and(seen.mask, joint_mask({}, mask, {})) : seen.mask;
    return joined(scaled_dot_product_attention(q, seen.keys, seen.values, {.mask = shown}));
  }

  /// x: [batch, heads, time, key_dim] with rotary embeddings of its places, if there are any.
  Tensor rotated(const Tensor& x) const {
    if (!options.rope_max_wavelength) return x;
    std::vector<double> turns;  // of one place: radians
    for (std::int64_t i = 0; i < key_dim; i += 2)
      turns.push_back(1 / (options.rope_scaling_factor *
                           std::pow(*options.rope_max_wavelength, static_cast<double>(i) / double(key_dim))));
    const DType dtype = x.dtype() == f64 ? f64 : f32;
    const KeyValueCache* cache = CallContext::here().cache;
    const Tensor places = cache ? cache->positions() : iota({x.shape()[2]}, i32);  // [batch, time] or [time]
    const Tensor angles = expand_dims(cast(places, dtype), -1) * cast(constant(turns), dtype);
    return rotary_embedding(x, cos(angles), sin(angles));
  }

  /// [batch, heads, time, width] -> [batch, time, outputs]
  Tensor joined(const Tensor& y) const {
    const Tensor kernel = parameter(index_of(3));
    const Tensor product = matmul(join_heads(y), reshape(kernel, {heads * value_dim, kernel.shape()[2]}));
    const Tensor result = options.use_bias ? product + parameter(index_of(3) + 1) : product;
    note_activity(options.activity_regularizer, result);
    return result;
  }

  std::int64_t heads, key_heads, key_dim, value_dim;
  AttentionOptions options;
  using Layer::note_lost_mask;
  using Layer::note_result;

 protected:
  Tensor call_on(In inputs) const override { return attend(inputs[0], inputs[1], inputs[2], {}); }

 private:
  std::size_t index_of(std::size_t projection) const { return projection * (options.use_bias ? 2 : 1); }
  void add_projection(const std::string& name, const Spec& input, std::int64_t count, std::int64_t width) {
    add_variable(name + "/kernel", cast(initializers::glorot_uniform({input.shape[2], count, width}), input.dtype),
                 options.kernel_regularizer);
    if (options.use_bias) add_variable(name + "/bias", zeros({count, width}, input.dtype), options.bias_regularizer);
  }
  /// [batch, time, inputs] -> [batch, heads, time, width]
  Tensor project(std::size_t which, std::string_view name, const Tensor& x) const {
    const Tensor kernel = parameter(index_of(which));
    const Shape& k = kernel.shape();
    require(x.shape().rank() == 3 && x.shape()[2] == k[0], layer, " ", this->name(), ": the ", name, " is ", x.spec(),
            ", expected [batch, time, ", k[0], "]");
    Tensor y = matmul(x, reshape(kernel, {k[0], k[1] * k[2]}));
    if (options.use_bias) y = y + reshape(parameter(index_of(which) + 1), {k[1] * k[2]});
    note_activity(options.activity_regularizer, y);
    return split_heads(y, k[1]);
  }
};

}  // namespace

MultiHeadAttention::MultiHeadAttention(std::int64_t heads, std::int64_t key_heads, std::int64_t key_dim,
                                       AttentionOptions options)
    : Module(named(std::make_shared<AttentionLayer>(heads, key_heads, key_dim, options), options.name)) {}
MultiHeadAttention::MultiHeadAttention(std::int64_t heads, std::int64_t key_dim, AttentionOptions options)
    : MultiHeadAttention(heads, heads, key_dim, std::move(options)) {}

Tensor MultiHeadAttention::operator()(const Tensor& x, AttentionMask mask) const {
  return (*this)(x, x, x, std::move(mask));
}

Tensor MultiHeadAttention::operator()(const Tensor& query, const Tensor& key, const Tensor& value,
                                      AttentionMask mask) const {
  auto& attention = layer_as<AttentionLayer>(*this, "MultiHeadAttention");
  require(!CallContext::here().cache, layer, " ", attention.name(),
          ": with a cache of keys and values it takes one input, attention(x), and no mask argument");
  attention.ensure_built(std::array{query.spec(), key.spec(), value.spec()});
  if (Trace* trace = Trace::current()) trace->note_use(this, attention.variables());
  const NameScope scope(attention.name().empty() ? attention.kind() : std::string_view(attention.name()));
  const CallScope call(attention);
  const Tensor q = attention.computed(query), k = attention.computed(key), v = attention.computed(value);
  const Tensor of_query = AttentionLayer::of_places(SequenceMask::of(q), q);
  const Tensor of_value = AttentionLayer::of_places(SequenceMask::of(v), v);
  Tensor of_keys = AttentionLayer::of_places(SequenceMask::of(k), k);
  if (of_value.defined() && value.node() != key.node())
    of_keys = of_keys.defined() ? logical_and(of_keys, of_value) : of_value;
  if (!mask.mask.defined())
    for (const Tensor& each : {q, k, v}) attention.note_lost_mask(each);
  const Tensor y = attention.attend(q, k, v, AttentionLayer::joint_mask(mask.mask, of_query, of_keys));
  attention.note_result(q, of_query, y);
  return y;
}

GroupedQueryAttention::GroupedQueryAttention(std::int64_t head_dim, std::int64_t query_heads,
                                             std::int64_t key_value_heads, AttentionOptions options)
    : MultiHeadAttention(query_heads, key_value_heads, head_dim, std::move(options)) {}

}  // namespace gradus
