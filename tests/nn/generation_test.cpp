/// Sequences made place by place, with keys and values kept, have the bits of whole sequences; the choice of tokens
/// follows the distribution that was asked for; what a cache cannot serve is refused.
#include <gtest/gtest.h>
#include <cmath>
#include <limits>
#include "gradus/gradus.h"
#include "tests/errors.h"

namespace gradus::generation_test {
namespace {

struct Block {
  LayerNormalization before{}, between{};
  MultiHeadAttention attention;
  Dense up, down;
  Tensor operator()(Tensor x) const {
    x = x + attention(before(x));
    return x + down(up(between(x)));
  }
};

constexpr std::int64_t vocabulary = 37;

Sequential decoder(MultiHeadAttention first, MultiHeadAttention second) {
  return Sequential{Embedding(vocabulary, 24),
                    PositionEmbedding(40),
                    Model<Block>(Block{{}, {}, std::move(first), Dense(48, relu), Dense(24)}),
                    Model<Block>(Block{{}, {}, std::move(second), Dense(48, relu), Dense(24)}),
                    LayerNormalization(),
                    Dense(vocabulary)};
}
Sequential decoder() {
  set_seed(3);
  Sequential model =
      decoder(MultiHeadAttention(4, 6, {.causal = true}), GroupedQueryAttention(6, 4, 2, {.causal = true}));
  model.build({i32, {any_size, any_size}});
  return model;
}
/// A block as LLaMA has it.
struct GatedBlock {
  RMSNormalization before{}, between{};
  GroupedQueryAttention attention{6, 4, 2, {.causal = true, .use_bias = false, .rope_max_wavelength = 10000}};
  Dense gate{48, silu, {.use_bias = false}}, up{48, linear, {.use_bias = false}}, down{24, linear, {.use_bias = false}};
  Tensor operator()(Tensor x) const {
    x = x + attention(before(x));
    const Tensor y = between(x);
    return x + down(gate(y) * up(y));
  }
};
Sequential gated_decoder() {
  set_seed(5);
  Sequential model{Embedding(vocabulary, 24), Model<GatedBlock>(GatedBlock()), Model<GatedBlock>(GatedBlock()),
                   RMSNormalization(), Dense(vocabulary, linear, {.use_bias = false})};
  model.build({i32, {any_size, any_size}});
  return model;
}
/// Learned positions, and rotary ones.
const std::vector<Sequential>& decoders() {
  static const std::vector<Sequential> all{decoder(), gated_decoder()};
  return all;
}
/// All memory at once, and as it is needed.
std::vector<KeyValueCacheOptions> memories(std::int64_t batch) {
  return {{.batch = batch, .max_length = 40},
          {.batch = batch, .max_length = 40, .initial_length = 1},
          {.batch = batch, .max_length = 40, .initial_length = 3, .growth = 1.3}};
}
Tensor tokens(std::int64_t batch, std::int64_t time) {
  return random::integers({batch, time}, {.high = vocabulary, .seed = 5});
}

void expect_whole_bits(const Sequential& model, const KeyValueCacheOptions& options,
                       const std::vector<std::int64_t>& parts, bool compiled) {
  KeyValueCache cache(options);
  const auto direct = [&](const Tensor& x) { return call_with_cache(model, x, cache); };
  const auto traced = function(direct);
  std::int64_t all = 0, begin = 0;
  for (const std::int64_t part : parts) all += part;
  const Tensor x = tokens(2, all), whole = model(x, inference);
  for (const std::int64_t part : parts) {
    const Tensor piece = slice(x, {0, begin}, {2, part});
    const Tensor y = compiled ? traced(piece) : direct(piece);
    EXPECT_EQ(y.to_vector<float>(), slice(whole, {0, begin, 0}, {2, part, vocabulary}).to_vector<float>())
        << part << " places from " << begin << (compiled ? ", compiled" : "") << ", at first "
        << options.initial_length;
    begin += part;
  }
  EXPECT_EQ(cache.lengths().to_vector<std::int32_t>(), std::vector<std::int32_t>(2, static_cast<int>(all)));
}

TEST(KeyValueCaches, HaveTheBitsOfWholeSequences) {
  for (const Sequential& model : decoders())
    for (const KeyValueCacheOptions& options : memories(2))
      for (const bool compiled : {false, true})
        for (const std::vector<std::int64_t>& parts :
             {std::vector<std::int64_t>{1, 1, 1, 1, 1, 1}, {5, 1, 2}, {1, 7}, {30, 1, 1, 3}})
          expect_whole_bits(model, options, parts, compiled);
}

TEST(KeyValueCaches, CountPlacesForEachSequence) {
  const Tensor x = tokens(2, 5), next = tokens(2, 1), last = tokens(2, 2);
  for (const Sequential& model : decoders())
    for (const KeyValueCacheOptions& options : memories(2))
      for (const bool compiled : {false, true}) {
        KeyValueCache cache(options);
        const auto direct = [&](const Tensor& part, const Tensor& counts) {
          return call_with_cache(model, part, cache, {.counts = counts});
        };
        const auto traced = function(direct);
        const auto call = [&](const Tensor& part, const Tensor& counts) {
          return compiled ? traced(part, counts) : direct(part, counts);
        };
        call(x, constant({5, 3}));
        const Tensor y = call(next, constant({1, 1})), z = call(last, constant({2, 2}));
        for (const int row : {0, 1}) {
          const std::int64_t count = row == 0 ? 5 : 3;
          const Tensor sequence =
              concat({slice(x, {row, 0}, {1, count}), slice(next, {row, 0}, {1, 1}), slice(last, {row, 0}, {1, 2})}, 1);
          const Tensor whole = model(sequence, inference)[0];
          EXPECT_EQ(y[row].to_vector<float>(), whole.rows(count, count + 1).to_vector<float>());
          EXPECT_EQ(z[row].to_vector<float>(), whole.rows(count + 1, count + 3).to_vector<float>());
        }
        cache.reset();
        EXPECT_EQ(call(x, constant({5, 5})).to_vector<float>(), model(x, inference).to_vector<float>());
      }
}

TEST(KeyValueCaches, AreTracedAsOftenAsTheLogarithmOfTheLength) {
  const Sequential model = gated_decoder();
  KeyValueCache cache({.batch = 1, .max_length = 40, .initial_length = 2});
  const auto next = function([&](const Tensor& x) { return call_with_cache(model, x, cache); });
  std::vector<std::int64_t> capacities;
  for (int k = 0; k < 40; ++k) {
    next(tokens(1, 1));
    if (capacities.empty() || capacities.back() != cache.capacity()) capacities.push_back(cache.capacity());
  }
  EXPECT_EQ(capacities, (std::vector<std::int64_t>{2, 4, 8, 16, 32, 40}));
  const Explanation explanation = next.explain();
  ASSERT_EQ(explanation.retraces.size(), 5u);
  for (const Retrace& retrace : explanation.retraces)
    EXPECT_EQ(retrace.reason, "the cache of keys and values has grown");
  EXPECT_EQ(explanation.variants, 1);
  cache.reset();
  for (int k = 0; k < 20; ++k) next(tokens(1, 1));
  EXPECT_EQ(next.explain().retraces.size(), 5u);
}

TEST(KeyValueCaches, GrowWithinFunctionsThatAreTracedAlong) {
  const Sequential model = gated_decoder();
  const Tensor x = tokens(1, 12), whole = model(x, inference);
  KeyValueCache cache({.batch = 1, .max_length = 12, .initial_length = 2});
  const auto one = function([&](const Tensor& part) { return call_with_cache(model, part, cache); });
  const auto two = function([&](const Tensor& a, const Tensor& b) { return std::vector<Tensor>{one(a), one(b)}; });
  for (std::int64_t k = 0; k < 12; k += 2) {
    const std::vector<Tensor> made = two(slice(x, {0, k}, {1, 1}), slice(x, {0, k + 1}, {1, 1}));
    for (std::int64_t i : {0, 1})
      EXPECT_EQ(made[static_cast<std::size_t>(i)].to_vector<float>(),
                whole[0].rows(k + i, k + i + 1).to_vector<float>())
          << k + i;
  }
  EXPECT_EQ(cache.capacity(), 12);
}

TEST(KeyValueCaches, MakeRoomWhenAsked) {
  const Sequential model = gated_decoder();
  const Tensor x = tokens(1, 10), whole = model(x, inference);
  KeyValueCache cache({.batch = 1, .max_length = 10, .initial_length = 4});
  call_with_cache(model, slice(x, {0, 0}, {1, 3}), cache);
  cache.reserve(9);
  EXPECT_EQ(cache.capacity(), 9);
  EXPECT_EQ(call_with_cache(model, slice(x, {0, 3}, {1, 7}), cache).to_vector<float>(),
            whole[0].rows(3, 10).to_vector<float>());
  expect_error<OutOfRange>([&] { cache.reserve(11); }, {"max_length is 10", "a larger one"});
}

TEST(KeyValueCaches, ThatHaveToGrowWhereNothingCanBeginAgainSayHowToMendIt) {
  const Sequential model = gated_decoder();
  KeyValueCache cache({.batch = 1, .max_length = 8, .initial_length = 2});
  const auto longer = [&] { return call_with_cache(model, tokens(1, 3), cache); };
  expect_error<InvalidArgument>([&] { cond(constant(true), longer, longer); }, {"reserve", ".initial_length"});
  KeyValueCache small({.batch = 1, .max_length = 8, .initial_length = 2});
  const auto next = function([&](const Tensor& x) { return call_with_cache(model, x, small); });
  expect_error<InvalidArgument>([&] { next.stablehlo({{i32, {1, 1}}}); }, {"branch"});
}

TEST(KeyValueCaches, ThatAreFullSayHowToMendIt) {
  const Sequential model = gated_decoder();
  for (const std::int64_t initial : {4, 1})
    for (const bool compiled : {false, true}) {
      KeyValueCache cache({.batch = 1, .max_length = 4, .initial_length = initial});
      const auto direct = [&](const Tensor& x) { return call_with_cache(model, x, cache); };
      const auto traced = function(direct);
      const auto call = [&](const Tensor& x) { return compiled ? traced(x) : direct(x); };
      call(tokens(1, 3));
      expect_error<OutOfRange>(
          [&] { call(tokens(1, 2)).to_vector<float>(); },
          {"outside [0, 4)", "is full: make it with a larger max_length, or begin again by reset()"});
      cache.reset();
      EXPECT_EQ(call(tokens(1, 4)).to_vector<float>(), model(tokens(1, 4), inference).to_vector<float>());
    }
}

/// Against the formula of the paper, with angles in f64.
TEST(RotaryEmbeddings, OfAttentionLayersTurnQueriesAndKeys) {
  set_seed(8);
  const GroupedQueryAttention layer(6, 2, 1, {.causal = true, .rope_max_wavelength = 500, .rope_scaling_factor = 2});
  const Tensor x = random::normal({2, 7, 5}, {.seed = 1}), y = layer(x);
  std::vector<double> cosines, sines;
  for (int place = 0; place < 7; ++place)
    for (int i = 0; i < 3; ++i) {
      const double angle = place / 2.0 / std::pow(500, i / 3.0);
      cosines.push_back(std::cos(angle)), sines.push_back(std::sin(angle));
    }
  const auto table = [](const std::vector<double>& values) { return cast(from_values(values, {7, 3}), f32); };
  Variables all = layer.variables();
  const auto project = [&](std::size_t k, std::int64_t heads) {
    return split_heads(
        matmul(x, reshape(all[2 * k].value(), {5, heads * 6})) + reshape(all[2 * k + 1].value(), {heads * 6}), heads);
  };
  const auto turned = [&](const Tensor& part) { return rotary_embedding(part, table(cosines), table(sines)); };
  const Tensor made = join_heads(
      scaled_dot_product_attention(turned(project(0, 2)), turned(project(1, 1)), project(2, 1), {.causal = true}));
  const Tensor wanted = matmul(made, reshape(all[6].value(), {12, 5})) + all[7].value();
  EXPECT_LT(reduce_max(abs(y - wanted)).item(), 1e-5);
  EXPECT_THROW(MultiHeadAttention(2, 5, {.rope_max_wavelength = 10000}), InvalidArgument);
  EXPECT_THROW(MultiHeadAttention(2, 4, {.rope_max_wavelength = 0}), InvalidArgument);
}

TEST(KeyValueCaches, KeepMasks) {
  set_seed(4);
  Sequential model{Embedding(vocabulary, 12, {.mask_zero = true}), MultiHeadAttention(2, 6, {.causal = true}),
                   Dense(5)};
  const Tensor x = constant({{3, 0, 5, 0, 7, 1}});
  const Tensor whole = model(x, inference);
  KeyValueCache cache({.batch = 1, .max_length = 6});
  for (std::int64_t k = 0; k < 6; ++k)  // places that are left out, too
    EXPECT_EQ(call_with_cache(model, slice(x, {0, k}, {1, 1}), cache).to_vector<float>(),
              whole[0].rows(k, k + 1).to_vector<float>())
        << k;
}

/// Place by place a model has the bits of `whole`; x, whole: [1, 3, 8].
void expect_places_of(const Module& model, const Tensor& x, const Tensor& whole) {
  KeyValueCache cache({.batch = 1, .max_length = 3});
  for (std::int64_t k = 0; k < 3; ++k)
    EXPECT_EQ(call_with_cache(model, slice(x, {0, k, 0}, {1, 1, 8}), cache).to_vector<float>(),
              slice(whole, {0, k, 0}, {1, 1, 8}).to_vector<float>())
        << k;
}

TEST(KeyValueCaches, AreExtendedByFunctionsThatWereTracedWithoutOne) {
  struct Net {
    MultiHeadAttention attention;
    const std::function<Tensor(const Tensor&)>* attend = nullptr;
    Tensor operator()(const Tensor& x) const { return (*attend)(x); }
  };
  const MultiHeadAttention* attention = nullptr;
  const auto traced = function([&](const Tensor& x) { return (*attention)(x); });
  const std::function<Tensor(const Tensor&)> attend = [&](const Tensor& x) { return traced(x); };
  set_seed(5);
  const Model<Net> model(Net{MultiHeadAttention(2, 4, {.causal = true}), &attend});
  attention = &model->attention;
  const Tensor x = random::normal({1, 3, 8}, {.seed = 2}), whole = model(x, inference);
  for (int k = 0; k < 3; ++k) model(slice(x, {0, k, 0}, {1, 1, 8}), inference);
  expect_places_of(model, x, whole);
}

TEST(KeyValueCaches, AreExtendedBehindRecomputeGrad) {
  struct Net {
    MultiHeadAttention attention;
    Tensor operator()(const Tensor& x) const {
      return recompute_grad([this](const Tensor& y) { return attention(y); })(x);
    }
  };
  set_seed(6);
  const Model<Net> model(Net{MultiHeadAttention(2, 4, {.causal = true})});
  const Tensor x = random::normal({1, 3, 8}, {.seed = 2}), whole = model(x, inference);
  expect_places_of(model, x, whole);
}

TEST(KeyValueCaches, RefuseWhatTheyCannotServe) {
  const Tensor x = random::normal({1, 3, 8});
  const auto refused = [&](const Module& model, const Tensor& input, const char* words) {
    KeyValueCache cache({.batch = 1, .max_length = 4});
    expect_error<InvalidArgument>([&] { call_with_cache(model, input, cache); }, {words});
    EXPECT_EQ(cache.lengths().to_vector<std::int32_t>(), std::vector<std::int32_t>{0});
  };
  refused(MultiHeadAttention(2, 4), x, "it is not causal");
  refused(LSTM(4), x, "it looks at several places");
  refused(Conv1D(4, 2), x, "it looks at several places");
  refused(MaxPooling1D(2), x, "it looks at several places");
  refused(GlobalMaxPooling1D(), x, "it looks at several places");
  refused(ZeroPadding1D({1, 0}), x, "it looks at several places");
  refused(GroupNormalization(2), x, "it looks at several places");
  refused(LayerNormalization({.axis = {1, 2}}), x, "it looks at several places");
  refused(Softmax(1), x, "it looks at several places");
  {
    KeyValueCache each({.batch = 1, .max_length = 4});
    call_with_cache(Sequential{Conv1D(4, 1), LayerNormalization(), Softmax()}, x, each);
  }
  refused(Dense(4), random::normal({2, 3, 8}), "the batch of the cache");
  const MultiHeadAttention attention(2, 4, {.causal = true});
  for (const int count : {-1, 4}) {
    KeyValueCache counted({.batch = 1, .max_length = 9});
    expect_error<OutOfRange>(
        [&] {
          call_with_cache(attention, x, counted, {.counts = constant({count})});
          counted.lengths().to_vector<std::int32_t>();
        },
        {"counts", "outside [0, 4)"});
  }
  KeyValueCache cache({.batch = 1, .max_length = 4});
  call_with_cache(attention, x, cache);
  expect_error<OutOfRange>([&] { call_with_cache(attention, x, cache).to_vector<float>(); }, {"outside [0, 4)"});
  EXPECT_THROW(KeyValueCache({.batch = 0}), InvalidArgument);
  EXPECT_THROW(KeyValueCache({.growth = 1}), InvalidArgument);
}

TEST(Generation, IsThatOfWholeSequences) {
  for (const Sequential& model : decoders()) {
    const Tensor prompt = tokens(2, 4);
    const Generated made = generate(model, prompt, {.max_tokens = 9, .temperature = 0});
    EXPECT_EQ(made.tokens.shape(), (Shape{2, 13}));
    Tensor all = prompt;
    for (int k = 0; k < 9; ++k) {
      const Tensor logits = model(all, inference);
      const Tensor last = slice(logits, {0, all.shape()[1] - 1, 0}, {2, 1, vocabulary});
      all = concat({all, cast(argmax(last, -1), i32)}, 1);
    }
    EXPECT_EQ(made.tokens.to_vector<std::int32_t>(), all.to_vector<std::int32_t>());
  }
}

TEST(Generation, EndsWithAStopAndKeepsLengths) {
  const Sequential model = decoder();
  const Tensor prompt = tokens(2, 4), lengths = constant({4, 2});
  const Generated free = generate(model, prompt, {.max_tokens = 8, .temperature = 0, .prompt_lengths = lengths});
  const auto row = free.tokens[1].to_vector<std::int32_t>();
  EXPECT_EQ(free.lengths.to_vector<std::int32_t>(), (std::vector<std::int32_t>{12, 10}));
  const std::int32_t stop = row[4];
  const Generated ended =
      generate(model, prompt, {.max_tokens = 8, .temperature = 0, .stop = {stop}, .prompt_lengths = lengths});
  const auto length = ended.lengths.to_vector<std::int32_t>()[1];
  EXPECT_LE(length, 5);
  EXPECT_EQ(ended.tokens[1].to_vector<std::int32_t>()[static_cast<std::size_t>(length) - 1], stop);
}

TEST(Generation, OfASeedIsTheSame) {
  const Sequential model = decoder();
  Generator generator(model, 1, 30);
  const Tensor prompt = tokens(1, 3);
  const GenerateOptions options{.max_tokens = 20, .temperature = 1.5, .top_k = 10, .top_p = 0.9, .seed = 8};
  std::vector<std::int32_t> visited;
  const auto first = generator(prompt, options, [&](const Tensor& token) {
                       visited.push_back(token.to_vector<std::int32_t>()[0]);
                     }).tokens.to_vector<std::int32_t>();
  EXPECT_EQ(generator(prompt, options).tokens.to_vector<std::int32_t>(), first);
  EXPECT_EQ(visited, std::vector<std::int32_t>(first.begin() + 3, first.end()));
}

TEST(Generation, RefusesModelsThatMixPlaces) {
  struct Mean {
    Embedding embedding{vocabulary, 8};
    Dense head{vocabulary};
    Tensor operator()(const Tensor& x) const {
      const Tensor all = embedding(x);
      return head(all + reduce_mean(all, {.axis = {1}, .keepdims = true}));
    }
  };
  set_seed(1);
  const Model<Mean> model;
  Generator mixing(model, 1, 20);
  for (int k = 0; k < 2; ++k)  // a trial that failed is made again
    expect_error<InvalidArgument>([&] { mixing(constant({{1, 2, 3}}), {.max_tokens = 3}); },
                                  {"apart from those of whole sequences"});
  const Sequential good = decoder();
  expect_error<InvalidArgument>([&] { generate(good, constant({1, 2})); }, {"expected i32 [batch, time]"});
  expect_error<OutOfRange>([&] { generate(good, constant({{1, 2}}), {.prompt_lengths = constant({3})}); },
                           {"a prompt of 3 tokens"});
  EXPECT_THROW(generate(good, constant({{1, 2}}), {.top_p = 2}), InvalidArgument);
}

TEST(Generation, OfFewPlacesTriesNoMore) {
  set_seed(3);
  Sequential model{Embedding(vocabulary, 8), PositionEmbedding(2), MultiHeadAttention(2, 4, {.causal = true}),
                   Dense(vocabulary)};
  EXPECT_EQ(generate(model, constant({{1}}), {.max_tokens = 1}).tokens.shape(), (Shape{1, 2}));
  Generator generator(model, 1, 2);
  expect_error<InvalidArgument>(
      [&] { generator(constant({{1}}), {.max_tokens = std::numeric_limits<std::int64_t>::max()}); }, {"do not fit"});
}

/// Zeros behind a short first prompt are none of its tokens.
TEST(Generation, OfRaggedPromptsWithMasks) {
  set_seed(4);
  Sequential model{Embedding(vocabulary, 12, {.mask_zero = true}), MultiHeadAttention(2, 6, {.causal = true}),
                   Dense(vocabulary)};
  const Tensor prompts = constant({{3, 0, 0}, {4, 5, 6}});
  const Generated both =
      generate(model, prompts, {.max_tokens = 2, .temperature = 0, .prompt_lengths = constant({1, 3})});
  const Generated first = generate(model, constant({{3}}), {.max_tokens = 2, .temperature = 0});
  EXPECT_EQ(slice(both.tokens, {0, 0}, {1, 3}).to_vector<std::int32_t>(), first.tokens.to_vector<std::int32_t>());
}

TEST(ChosenTokens, OfNarrowLogitsHaveTheirProbabilitiesInF32) {
  const Tensor logits = cast(constant({{4.0F, -3.0F}}), bf16);  // the second one has 0.0009
  int seconds = 0;
  set_seed(2);
  const Tensor many = broadcast_to(logits, {20000, 2});
  for (const std::int32_t token : choose_token(many, {.top_p = 0.999}).to_vector<std::int32_t>()) seconds += token;
  EXPECT_EQ(seconds, 0);
}

/// Shares of 20,000 draws beside the probabilities.
TEST(ChosenTokens, FollowTheDistribution) {
  const std::vector<double> logits{1.0, 0.0, 2.0, -1.0, 0.5};
  const auto expect = [&](const TokenChoice& choice, const std::vector<bool>& may) {
    constexpr int draws = 20000;
    const Tensor all = broadcast_to(cast(constant(logits), f32), {draws, 5});
    set_seed(11);
    std::vector<int> count(5);
    for (const std::int32_t token : choose_token(all, choice).to_vector<std::int32_t>())
      ++count[static_cast<std::size_t>(token)];
    double sum = 0;
    for (std::size_t i = 0; i < 5; ++i) sum += may[i] ? std::exp(logits[i] / choice.temperature) : 0;
    for (std::size_t i = 0; i < 5; ++i) {
      const double share = may[i] ? std::exp(logits[i] / choice.temperature) / sum : 0;
      EXPECT_NEAR(count[i] / double(draws), share, 5 * std::sqrt(share * (1 - share) / draws)) << i;
    }
  };
  expect({}, {true, true, true, true, true});
  expect({.temperature = 2}, {true, true, true, true, true});
  expect({.top_k = 2}, {true, false, true, false, false});
  expect({.top_k = 100}, {true, true, true, true, true});
  expect({.top_p = 0.7}, {true, false, true, false, false});  // 0.56 + 0.21
  expect({.top_p = 0}, {false, false, true, false, false});
  expect({.top_k = 3, .top_p = 0.99}, {true, false, true, false, true});
  EXPECT_EQ(
      choose_token(cast(broadcast_to(constant(logits), {2, 5}), f32), {.temperature = 0}).to_vector<std::int32_t>(),
      (std::vector<std::int32_t>{2, 2}));
}

}  // namespace
}  // namespace gradus::generation_test
