/// The tables behind embeddings.
#include "gradus/nn/embedding.h"
#include "gradus/nn/cloned.h"
#include "gradus/nn/described.h"
#include "gradus/nn/key_value_cache.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/indexing.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"

namespace gradus {
namespace {

struct EmbeddingLayer final : Cloned<EmbeddingLayer>, Described {
  EmbeddingLayer(std::int64_t n, std::int64_t w, EmbeddingOptions o) : vocabulary(n), width(w), options(std::move(o)) {
    require(vocabulary > 0 && width > 0, "Embedding: vocabulary and width must be positive, got ", vocabulary, " and ",
            width);
    set_activity_regularizer(options.activity_regularizer);
  }
  std::string_view kind() const override { return "embedding"; }
  LayerConfig config() const override {
    return {"Embedding",
            {{"input_dim", vocabulary},
             {"output_dim", width},
             {"mask_zero", options.mask_zero},
             {"embeddings_regularizer", options.embeddings_regularizer},
             {"activity_regularizer", options.activity_regularizer}}};
  }
  void build(const Spec& input) override {
    require(is_integer(input.dtype), "Embedding: the input is ", input, ", expected integers; cast(x, i32) first");
    const DType t = policy() ? policy()->variable : f32;
    add_variable("embeddings", cast(options.embeddings_initializer({vocabulary, width}), t),
                 options.embeddings_regularizer);
  }
  Tensor call(const Tensor& x) const override {
    require(is_integer(x.dtype()), "Embedding ", name(), ": the input is ", x.spec(),
            ", expected integers; cast(x, i32) first");
    return computed(gather(variable(0), x));
  }
  Tensor compute_mask(const Tensor& x, const Tensor&) const override {
    return options.mask_zero ? not_equal(x, 0) : Tensor();
  }
  std::int64_t multiplications() const override { return 0; }
  std::int64_t vocabulary, width;
  EmbeddingOptions options;
  using Layer::variable;
};

struct PositionEmbeddingLayer final : ClonedMasked<PositionEmbeddingLayer> {
  PositionEmbeddingLayer(std::int64_t n, EmbeddingOptions o) : length(n), options(std::move(o)) {
    require(length > 0, "PositionEmbedding: length must be positive, got ", length);
    set_activity_regularizer(options.activity_regularizer);
  }
  std::string_view kind() const override { return "position_embedding"; }
  void build(const Spec& input) override {
    require(is_floating(input.dtype) && input.shape.rank() >= 2 && input.shape.back() >= 0,
            "PositionEmbedding: the input is ", input, ", expected floats [..., time, width] with a known width");
    add_variable("embeddings", cast(options.embeddings_initializer({length, input.shape.back()}), input.dtype),
                 options.embeddings_regularizer);
  }
  Tensor call(const Tensor& x) const override {
    const std::int64_t time = x.shape()[-2];
    require(time <= length, "PositionEmbedding ", name(), ": the input is ", x.spec(), ", more than the ", length,
            " places that there are");
    const Tensor table = parameter(0);
    if (const KeyValueCache* cache = CallContext::here().cache) return x + gather(table, cache->positions());
    return x + slice_axis(table, 0, 0, time, "PositionEmbedding");
  }
  std::int64_t multiplications() const override { return 0; }
  std::int64_t length;
  EmbeddingOptions options;
};

struct MaskingLayer final : Cloned<MaskingLayer>, Described {
  explicit MaskingLayer(double v) : value(v) {}
  std::string_view kind() const override { return "masking"; }
  LayerConfig config() const override { return {"Masking", {{"mask_value", value}}}; }
  void build(const Spec& input) override {
    require(input.shape.rank() >= 2, "Masking: the input is ", input, ", expected [..., time, features]");
  }
  Tensor call(const Tensor& x) const override {
    return where(expand_dims(compute_mask(x, {}), -1), x, fill_like(x, 0));
  }
  Tensor compute_mask(const Tensor& x, const Tensor&) const override {
    return reduce_any(not_equal(x, value), {.axis = {-1}});
  }
  double value;
};

}  // namespace

Embedding::Embedding(std::int64_t vocabulary, std::int64_t width, EmbeddingOptions options)
    : Module(named(std::make_shared<EmbeddingLayer>(vocabulary, width, options), options.name)) {}
Variable& Embedding::table() const {
  require(is_built(), "Embedding: it has no table before it is built");
  return layer_as<EmbeddingLayer>(*this, "Embedding").variable(0);
}
Tensor Embedding::compute_mask(const Tensor& x) const {
  require(layer_as<EmbeddingLayer>(*this, "Embedding").options.mask_zero,
          "Embedding: there is no mask; it was made without mask_zero");
  return not_equal(x, 0);
}
Masking::Masking(double mask_value) : Module(std::make_shared<MaskingLayer>(mask_value)) {}
PositionEmbedding::PositionEmbedding(std::int64_t length, EmbeddingOptions options)
    : Module(named(std::make_shared<PositionEmbeddingLayer>(length, options), options.name)) {}

}  // namespace gradus
