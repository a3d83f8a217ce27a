/// Generation: one program for a prompt, one for each further token, which chooses it, too.
#include "gradus/nn/generation.h"
#include <algorithm>
#include <limits>
#include <optional>
#include <utility>
#include "gradus/base/floating_point_state.h"
#include "gradus/function/function.h"
#include "gradus/graph/context.h"
#include "gradus/nn/key_value_cache.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/cumulative.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/indexing.h"
#include "gradus/ops/random.h"
#include "gradus/ops/random_state.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/sort.h"
#include "gradus/ops/softmax.h"

namespace gradus {
namespace {

constexpr std::string_view op = "generate";

/// Logits [..., count] in descending order, where those behind the ones that together have the probability `top_p` are
/// -infinity. The first one stays.
Tensor nucleus(const Tensor& sorted, const Tensor& top_p) {
  const Tensor before = cumsum(softmax(sorted), {.axis = -1, .exclusive = true});
  const Tensor first = equal(range(sorted.shape()[-1], i32), 0);
  return where(logical_or(first, before < top_p), sorted, fill_like(sorted, -std::numeric_limits<double>::infinity()));
}

/// top_k and whether top_p is below 1 are structure, the temperature and top_p are data.
struct Choice {
  std::int64_t top_k;
  bool is_greedy, has_nucleus;
};

Tensor chosen(const Tensor& given, const Choice& choice, const Tensor& temperature, const Tensor& top_p) {
  const Tensor logits = is_narrow(given.dtype()) ? cast(given, f32) : given;
  if (choice.is_greedy) return cast(argmax(logits, -1), i32);
  const Tensor scaled = logits / cast(temperature, logits.dtype());
  const std::int64_t all = logits.shape()[-1], count = choice.top_k > 0 ? std::min(choice.top_k, all) : all;
  const auto draw = [](const Tensor& of) { return squeeze(random::categorical(of, 1), {-1}); };
  if (count == all && !choice.has_nucleus) return draw(scaled);
  const TopK likeliest = top_k(scaled, count);
  const Tensor left = choice.has_nucleus ? nucleus(likeliest.values, cast(top_p, logits.dtype())) : likeliest.values;
  return squeeze(take_along_axis(likeliest.indices, expand_dims(draw(left), -1), -1), {-1});
}

template <class Options> Choice choice_of(const Options& options) {
  return {options.top_k, options.temperature == 0, options.top_p < 1};
}

}  // namespace

Tensor choose_token(const Tensor& logits, TokenChoice choice) {
  const HostFloats floats;
  check_options("choose_token", choice);
  require(is_floating(logits.dtype()) && logits.shape().rank() > 0 && logits.shape()[-1] != 0,
          "choose_token: logits are ", logits.spec(), ", expected floats [..., vocabulary]");
  const Tensor wide = is_narrow(logits.dtype()) ? cast(logits, f32) : logits;
  return chosen(wide, choice_of(choice), scalar_like(wide, choice.temperature, "choose_token"),
                scalar_like(wide, choice.top_p, "choose_token"));
}

namespace {

/// The results of some tokens, made one by one, must be those of the whole sequence. The first prompt has `count`
/// tokens.
void try_model(const Module& model, const Tensor& prompt, std::int32_t count, std::int64_t max_length) {
  const std::int64_t places = std::min<std::int64_t>(3, max_length);
  const Tensor tokens = gather(prompt.rows(0, 1), mod(range(places, i32), count), 1);
  const Tensor whole = cast(model(tokens, inference), f32);
  require(whole.shape().rank() == 3 && whole.shape()[1] == places, op, ": the model gives ", whole.spec(), " for ",
          tokens.spec(), ", expected logits [batch, time, vocabulary]");
  KeyValueCache cache({.batch = 1, .max_length = places});
  std::vector<Tensor> made;
  for (std::int64_t k = 0; k < places; ++k)
    made.push_back(cast(call_with_cache(model, slice(tokens, {0, k}, {1, 1}), cache), f32));
  const auto largest = [](const Tensor& x) { return reduce_max(abs(x)).to_vector<float>()[0]; };
  const float apart = largest(concat(made, 1) - whole);
  require(!(apart > 1e-2f * (1 + largest(whole))), op, ": place by place the model's results are up to ", apart,
          " apart from those of whole sequences; a place may look at others by causal attention and PositionEmbedding "
          "alone");
}

}  // namespace

struct Generator::State {
  State(const Module& m, std::int64_t batch, std::int64_t max_length)
      : model(m), cache({.batch = batch, .max_length = max_length}) {}
  State(const State&) = delete;

  /// The first token after prompts, of which `counts` places count.
  struct Begin {
    State* state;
    Tensor operator()(const Tensor& prompt, const Tensor& counts, std::int64_t top_k, bool is_greedy, bool has_nucleus,
                      const Tensor& temperature, const Tensor& top_p) const {
      const Tensor logits = call_with_cache(state->model, prompt, state->cache, {.counts = counts});
      const Tensor last = squeeze(gather(logits, expand_dims(counts - 1, -1), 1, 1), {1});
      return chosen(last, {top_k, is_greedy, has_nucleus}, temperature, top_p);
    }
  };
  /// The token after `token`.
  struct Next {
    State* state;
    Tensor operator()(const Tensor& token, std::int64_t top_k, bool is_greedy, bool has_nucleus,
                      const Tensor& temperature, const Tensor& top_p) const {
      const Tensor logits = call_with_cache(state->model, expand_dims(token, 1), state->cache);
      return chosen(squeeze(logits, {1}), {top_k, is_greedy, has_nucleus}, temperature, top_p);
    }
  };

  const Module& model;
  KeyValueCache cache;
  bool is_tried = false;
  const Function<Begin> begin{Begin{this}, {}};
  const Function<Next> next{Next{this}, {}};
};

namespace {

/// The tokens of each sequence so far; a sequence ends with a stop.
class Sequences {
 public:
  Sequences(const Tensor& prompt, const Tensor& counts, const std::vector<std::int32_t>& stop)
      : stop_(stop), made_(static_cast<std::size_t>(prompt.shape()[0])), ended_(made_.size()) {
    const std::vector<std::int32_t> all = prompt.to_vector<std::int32_t>(), count = counts.to_vector<std::int32_t>();
    const auto time = static_cast<std::ptrdiff_t>(prompt.shape()[1]);
    for (std::size_t i = 0; i < made_.size(); ++i) {
      const auto first = all.begin() + static_cast<std::ptrdiff_t>(i) * time;
      made_[i].assign(first, first + count[i]);
    }
  }
  void add(const Tensor& tokens) {
    const std::vector<std::int32_t> next = tokens.to_vector<std::int32_t>();
    for (std::size_t i = 0; i < made_.size(); ++i) {
      if (ended_[i]) continue;
      made_[i].push_back(next[i]);
      ended_[i] = std::ranges::count(stop_, next[i]) > 0;
    }
  }
  bool have_ended() const {
    return std::ranges::all_of(ended_, [](bool ended) { return ended; });
  }
  Generated result() const {
    std::size_t longest = 0;
    std::vector<std::int32_t> lengths, all;
    for (const auto& sequence : made_) {
      longest = std::max(longest, sequence.size());
      lengths.push_back(static_cast<std::int32_t>(sequence.size()));
    }
    for (const auto& sequence : made_) {
      all.insert(all.end(), sequence.begin(), sequence.end());
      all.resize(all.size() + longest - sequence.size());
    }
    const auto batch = static_cast<std::int64_t>(made_.size());
    return {from_values(all, {batch, static_cast<std::int64_t>(longest)}), from_values(lengths, {batch})};
  }

 private:
  const std::vector<std::int32_t>& stop_;
  std::vector<std::vector<std::int32_t>> made_;
  std::vector<bool> ended_;
};

/// How many places of each prompt count: i32 [batch].
Tensor counts_of(const Tensor& prompt, const Tensor& given) {
  const std::int64_t batch = prompt.shape()[0], time = prompt.shape()[1];
  if (!given.defined()) return full({batch}, static_cast<int>(time), i32);
  require(given.dtype() == i32 && given.shape() == Shape{batch}, op, ": prompt_lengths are ", given.spec(),
          ", expected ", Spec{i32, {batch}});
  for (const std::int32_t count : given.to_vector<std::int32_t>())
    require<OutOfRange>(count >= 1 && count <= time, op, ": a prompt of ", count, " tokens among prompts of ",
                        prompt.spec());
  return given;
}

void check_prompt(const Tensor& prompt) {
  require(prompt.dtype() == i32 && prompt.shape().rank() == 2 && prompt.shape()[0] > 0 && prompt.shape()[1] > 0, op,
          ": the prompt is ", prompt.spec(), ", expected i32 [batch, time] with a token at least");
}

}  // namespace

Generator::Generator(const Module& model, std::int64_t batch, std::int64_t max_length)
    : state_(std::make_unique<State>(model, batch, max_length)) {}
Generator::~Generator() = default;
Generator::Generator(Generator&&) noexcept = default;

Generated Generator::operator()(const Tensor& prompt, GenerateOptions options,
                                const std::function<void(const Tensor&)>& visit) {
  const HostFloats floats;
  check_options(op, options);
  check_prompt(prompt);
  State& state = *state_;
  const std::int64_t batch = state.cache.options().batch, max_length = state.cache.options().max_length;
  require(prompt.shape()[0] == batch && options.max_tokens <= max_length - prompt.shape()[1], op, ": prompts ",
          prompt.spec(), " and ", options.max_tokens, " tokens more do not fit a Generator of ", batch,
          " sequences of up to ", max_length, " tokens");
  std::uint64_t own_state = options.seed ? random_state_of(*options.seed) : 0;
  std::optional<FieldScope<&CallContext::random_state>> seeded;
  if (options.seed) seeded.emplace(&own_state);
  const Tensor counts = counts_of(prompt, options.prompt_lengths);
  if (!state.is_tried) try_model(state.model, prompt, counts.to_vector<std::int32_t>()[0], max_length);
  state.is_tried = true;
  Sequences sequences(prompt, counts, options.stop);
  if (options.max_tokens == 0) return sequences.result();
  const auto [top_k, is_greedy, has_nucleus] = choice_of(options);
  const double temperature = is_greedy ? 1 : options.temperature;
  state.cache.reset();
  state.cache.reserve(prompt.shape()[1] + options.max_tokens);
  Tensor token = state.begin(prompt, counts, top_k, is_greedy, has_nucleus, temperature, options.top_p);
  for (std::int64_t made = 1;; ++made) {
    sequences.add(token);
    if (visit) visit(token);
    if (made == options.max_tokens || sequences.have_ended()) return sequences.result();
    token = state.next(token, top_k, is_greedy, has_nucleus, temperature, options.top_p);
  }
}

Generated generate(const Module& model, const Tensor& prompt, GenerateOptions options) {
  check_options(op, options);
  check_prompt(prompt);
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  require<OutOfRange>(prompt.shape()[1] <= most && options.max_tokens <= most - prompt.shape()[1], op, ": prompts ",
                      prompt.spec(), " and max_tokens ", options.max_tokens, " have more than ", most, " places");
  Generator generator(model, prompt.shape()[0], prompt.shape()[1] + options.max_tokens);
  return generator(prompt, std::move(options));
}

}  // namespace gradus
