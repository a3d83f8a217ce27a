/// Tokens one by one by a small GPT: with a cache of keys and values, and with keys and values as arguments and results
/// of growing length.
#include <numeric>
#include <vector>
#include "bench/gpt_model.h"
#include "bench/inputs.h"
#include "bench/workloads.h"
#include "gradus/function/function.h"
#include "gradus/function/synchronize.h"
#include "gradus/nn/key_value_cache.h"
#include "gradus/nn/model.h"
#include "gradus/ops/attention.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"

namespace gradus::bench {
namespace {

constexpr GptSize size{.vocabulary = 8192, .places = 512, .width = 512, .heads = 8, .layers = 8};
constexpr int tokens = 256;

/// The first tokens of a batch: 1, 2, 3 ...
std::vector<std::int32_t> first_tokens(std::int64_t batch) {
  std::vector<std::int32_t> first(static_cast<std::size_t>(batch));
  std::iota(first.begin(), first.end(), 1);
  return first;
}

void set_variables(const Variables& variables) {
  if (!assign_given(variables)) draw_kernels(variables);
}

/// Times next(k, token), which gives the tokens that follow the ones of place k; each is read before the next is made.
/// After the last place another sequence begins, which `begin` prepares.
Figures measure_tokens(std::int64_t batch, const auto& begin, const auto& next) {
  std::vector<std::int32_t> token;
  std::int64_t made = 0, sum = 0;  // of the first sequence
  const auto step = [&] {
    const auto k = static_cast<int>(made++ % tokens);
    if (k == 0) begin(), token = first_tokens(batch);
    token = next(k, from_values(token, {batch})).template to_vector<std::int32_t>();
    if (made <= tokens) sum = std::accumulate(token.begin(), token.end(), sum);
  };
  Figures figures = measure(
      {.step = step, .step_without_reading = step, .wait = synchronize, .lacks_steps = [&] { return made < tokens; }});
  figures.extra["sum_of_tokens"] = sum;
  return figures;
}

Tensor likeliest(const Tensor& logits) { return cast(argmax(logits, -1), i32); }

/// With a cache that the layers write.
Figures cached(std::int64_t batch) {
  Model<Gpt> model(gpt_of(size));
  model.build({i32, {batch, size.places}});
  set_variables(model.variables());
  KeyValueCache cache({.batch = batch, .max_length = size.places});
  const auto next = function(
      [&](Tensor token) { return likeliest(squeeze(call_with_cache(model, expand_dims(token, 1), cache), {1})); },
      function_options);
  Figures figures =
      measure_tokens(batch, [&] { cache.reset(); }, [&](int, const Tensor& token) { return next(token); });
  figures.explain(next.explain());
  return figures;
}

/// A block whose keys and values the caller keeps.
struct StepBlock {
  LayerNormalization before_attention{{.epsilon = 1e-5}}, before_mlp{{.epsilon = 1e-5}};
  Dense query{size.width}, key{size.width}, value{size.width}, output{size.width};
  Dense up{4 * size.width, gelu_tanh}, down{size.width};
  Tensor operator()(Tensor x, Tensor& keys, Tensor& values) const {
    const Tensor y = before_attention(x);
    const auto heads = [](const Tensor& all) { return split_heads(all, size.heads); };
    const Tensor queries = heads(query(y)), own_keys = heads(key(y)), own_values = heads(value(y));
    const AttentionSteps steps =
        attention_steps(queries, own_keys, own_values, {.past_key = keys, .past_value = values});
    keys = steps.present_key, values = steps.present_value;
    x = x + output(join_heads(steps.output));
    return x + down(up(before_mlp(x)));
  }
};
using Kept = std::vector<Tensor>;  // of each layer
struct StepGpt {
  Embedding embed{size.vocabulary, size.width}, place{size.places, size.width};
  std::vector<StepBlock> blocks = std::vector<StepBlock>(size.layers);
  LayerNormalization last{{.epsilon = 1e-5}};
  Dense scores{size.vocabulary, linear, {.use_bias = false}};
  std::tuple<Tensor, Kept, Kept> following(const Tensor& token, const Tensor& at, Kept keys, Kept values) const {
    const Tensor tokens = embed(token), places = place(at);
    Tensor x = expand_dims(tokens + places, 0);
    for (std::size_t i = 0; i < size.layers; ++i) x = blocks[i](x, keys[i], values[i]);
    return {likeliest(squeeze(scores(last(x)), {1})), keys, values};
  }
};

/// The keys and values of each layer are arguments and results: one more place at each token.
Figures growing() {
  Model<StepGpt> model{StepGpt()};
  const auto step = [&](const Tensor& token, const Tensor& at, const Kept& keys, const Kept& values) {
    return model->following(token, at, keys, values);
  };
  const auto next = function(step, function_options);
  Kept keys, values;
  const auto begin = [&] {
    keys.assign(size.layers, zeros({1, size.heads, 0, size.width / size.heads})), values = keys;
  };
  begin();
  step(zeros({1}, i32), zeros({1}, i32), keys, values);
  set_variables(model.variables());
  Figures figures = measure_tokens(1, begin, [&](int k, const Tensor& token) {
    Tensor made;
    std::tie(made, keys, values) = next(token, constant({k}), keys, values);
    return made;
  });
  figures.explain(next.explain());
  figures.extra["variants"] = figures.explanation->variants;
  return figures;
}

}  // namespace

void add_generate(Workloads& workloads) {
  workloads["generate"] = [] { return cached(1); };
  workloads["generate_b8"] = [] { return cached(8); };
  workloads["generate_growing"] = growing;
}

}  // namespace gradus::bench
