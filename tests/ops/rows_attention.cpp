/// Rows of attention and rotary embeddings, against plain loops over heads, queries and keys.
#include <cmath>
#include <limits>
#include "gradus/ops/attention.h"
#include "gradus/ops/attention_ops.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/linear_attention.h"
#include "tests/ops/rows.h"

namespace gradus::rows::rows_attention {
namespace {

using Index = std::span<const std::int64_t>;
constexpr double infinity = std::numeric_limits<double>::infinity();

const Tensor& given(const Tensor& x) {
  (void)x.spec();
  return x;
}

double at(const Array& x, std::initializer_list<std::int64_t> index) {
  std::int64_t flat = 0;
  int axis = 0;
  for (std::int64_t i : index) flat = flat * x.shape[axis++] + i;
  return x.values[static_cast<std::size_t>(flat)];
}

/// What is added to the score of query q and key k; -inf: not looked at.
using Bias = std::function<double(std::int64_t batch, std::int64_t head, std::int64_t q, std::int64_t k)>;

/// One row of scores -> the weights; zeros if nothing is left.
std::vector<double> weights_of(const std::vector<double>& scores) {
  double most = -infinity, sum = 0;
  for (double s : scores) most = std::max(most, s);
  std::vector<double> weights(scores.size());
  if (most == -infinity) return weights;
  for (std::size_t k = 0; k < scores.size(); ++k) sum += weights[k] = std::exp(scores[k] - most);
  for (double& w : weights) w /= sum;
  return weights;
}

Array attended(const Array& query, const Array& key, const Array& value, double softcap, const Bias& bias) {
  const std::int64_t shared = query.shape[1] / key.shape[1], width = query.shape[3];
  Shape shape = query.shape;
  shape.set(3, value.shape[3]);
  Array out{shape, std::vector<double>(static_cast<std::size_t>(shape.size()))};
  std::size_t next = 0;
  for (std::int64_t b = 0; b < shape[0]; ++b)
    for (std::int64_t h = 0; h < shape[1]; ++h)
      for (std::int64_t q = 0; q < shape[2]; ++q) {
        std::vector<double> scores;
        for (std::int64_t k = 0; k < key.shape[2]; ++k) {
          double score = 0;
          for (std::int64_t d = 0; d < width; ++d) score += at(query, {b, h, q, d}) * at(key, {b, h / shared, k, d});
          score /= std::sqrt(static_cast<double>(width));
          if (softcap > 0) score = softcap * std::tanh(score / softcap);
          scores.push_back(score + bias(b, h, q, k));
        }
        const std::vector<double> weights = weights_of(scores);
        for (std::int64_t d = 0; d < shape[3]; ++d) {
          double sum = 0;
          for (std::int64_t k = 0; k < key.shape[2]; ++k)
            sum += weights[static_cast<std::size_t>(k)] * at(value, {b, h / shared, k, d});
          out.values[next++] = sum;
        }
      }
  return out;
}

double no_bias(std::int64_t, std::int64_t, std::int64_t, std::int64_t) { return 0; }
double allow(bool allowed) { return allowed ? 0 : -infinity; }

Row attention(std::string name, std::function<Tensor(In)> apply, std::vector<std::vector<Shape>> shapes,
              std::function<Array(Arrays)> reference) {
  Row row{.name = std::move(name), .covers = {"attention"}, .apply = std::move(apply), .operands = {{}, {}, {}}};
  row.shapes = std::move(shapes);
  row.reference = std::move(reference);
  row.tolerance = 64;
  row.magnitude = 4;
  row.slack = 4;
  return row;
}

const std::vector<Shape> small{{1, 2, 3, 2}, {1, 2, 4, 2}, {1, 2, 4, 3}},
    grouped{{2, 4, 2, 3}, {2, 2, 3, 3}, {2, 2, 3, 2}}, wide{{2, 2, 17, 8}, {2, 1, 33, 8}, {2, 1, 33, 16}},
    no_keys{{1, 1, 2, 2}, {1, 1, 0, 2}, {1, 1, 0, 2}};

Row plain() {
  Row row = attention(
      "scaled_dot_product_attention", [](In in) { return scaled_dot_product_attention(in[0], in[1], in[2]); },
      {small, grouped, no_keys, wide}, [](Arrays in) { return attended(in[0], in[1], in[2], 0, no_bias); });
  const auto zeros_of = [](const Shape& shape, DType t = f32) {
    return to_tensor({shape, std::vector<double>(static_cast<std::size_t>(shape.size()))}, t);
  };
  const auto refused = [&](Shape q, Shape k, Shape v, DotProductAttentionOptions options, std::string expected) {
    return Mistake{[=] { scaled_dot_product_attention(zeros_of(q), zeros_of(k), zeros_of(v), options); }, expected};
  };
  const Tensor mask = zeros_of({3, 3}), past = zeros_of({1, 2, 1, 2});
  row.mistakes = {refused({1, 3, 3, 2}, small[1], small[2], {}, "multiple"),
                  refused({3, 2}, small[1], small[2], {}, "[batch, heads, time, width]"),
                  refused({1, 2, 3, 5}, small[1], small[2], {}, "widths"),
                  refused({2, 2, 3, 2}, small[1], small[2], {}, "batches"),
                  refused(small[0], small[1], {1, 2, 5, 3}, {}, "as many"),
                  refused({1, 1, 3, 2}, {1, 1, 2, 2}, {1, 1, 2, 2}, {.mask = mask}, "broadcast"),
                  refused(small[0], small[1], small[2], {.past_key = past}, "go together"),
                  refused(small[0], small[1], small[2], {.softcap = -1}, "softcap"),
                  refused(small[0], small[1], small[2], {.dropout = 1}, "dropout")};
  return row;
}

std::vector<Row> masked() {
  Row causal = attention(
      "attention, causal",
      [](In in) { return scaled_dot_product_attention(in[0], in[1], in[2], {.causal = true, .softcap = 0.5}); },
      {small, grouped, wide},
      [](Arrays in) {
        return attended(in[0], in[1], in[2], 0.5,
                        [](auto, auto, std::int64_t q, std::int64_t k) { return allow(k <= q); });
      });
  causal.covers = {"matmul"};
  Row chosen = attention(
      "attention with a boolean mask",
      [](In in) { return scaled_dot_product_attention(in[0], in[1], in[2], {.mask = given(in[3]), .causal = true}); },
      {{small[0], small[1], small[2], {3, 4}}, {grouped[0], grouped[1], grouped[2], {2, 1, 1, 2}}},
      [](Arrays in) {
        return attended(in[0], in[1], in[2], 0, [&](std::int64_t b, auto, std::int64_t q, std::int64_t k) {
          const Array& mask = in[3];
          if (mask.shape.rank() == 2) return allow(k <= q && at(mask, {q, k}) != 0);
          return allow(k <= q && k < 2 && at(mask, {b, 0, 0, k}) != 0);  // what the mask lacks is not looked at
        });
      });
  chosen.operands.push_back({.dtype = boolean, .has_gradient = false});
  Row added = attention(
      "attention with an added mask",
      [](In in) { return scaled_dot_product_attention(in[0], in[1], in[2], {.mask = given(in[3])}); },
      {{small[0], small[1], small[2], {2, 3, 4}}, {grouped[0], grouped[1], grouped[2], {3}}},
      [](Arrays in) {
        return attended(in[0], in[1], in[2], 0, [&](auto, std::int64_t h, std::int64_t q, std::int64_t k) {
          return in[3].shape.rank() == 1 ? at(in[3], {k}) : at(in[3], {h, q, k});
        });
      });
  added.operands.emplace_back();
  const Row nothing_left = attention(
      "attention that is left without keys",
      [](In in) {
        const Tensor mask = to_tensor({{3, 4}, {0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 1}}, in[0].dtype());
        return scaled_dot_product_attention(in[0], in[1], in[2], {.mask = where(mask > 0, mask, -infinity)});
      },
      {small},
      [](Arrays in) {
        return attended(in[0], in[1], in[2], 0, [](auto, auto, std::int64_t q, std::int64_t k) {
          const bool allowed = (q == 1 && (k == 0 || k == 2)) || (q == 2 && k == 3);
          return allowed ? 1 : -infinity;
        });
      });
  return {causal, chosen, added, nothing_left};
}

std::vector<Row> cached() {
  Row past = attention(
      "attention after past keys",
      [](In in) {
        return scaled_dot_product_attention(in[0], in[1], in[2],
                                            {.causal = true, .past_key = given(in[3]), .past_value = given(in[4])});
      },
      {{{1, 2, 2, 3}, {1, 1, 2, 3}, {1, 1, 2, 2}, {1, 1, 3, 3}, {1, 1, 3, 2}}},
      [](Arrays in) {
        const auto joined = [](const Array& a, const Array& b) {  // along time, of one head
          Array all{{1, 1, a.shape[2] + b.shape[2], a.shape[3]}, a.values};
          all.values.insert(all.values.end(), b.values.begin(), b.values.end());
          return all;
        };
        return attended(in[0], joined(in[3], in[1]), joined(in[4], in[2]), 0,
                        [](auto, auto, std::int64_t q, std::int64_t k) { return allow(k <= q + 3); });
      });
  past.operands.resize(5);
  Row lengths = attention(
      "attention within lengths and a window",
      [](In in) {
        return scaled_dot_product_attention(in[0], in[1], in[2],
                                            {.causal = true, .key_lengths = given(in[3]), .left_window = 1});
      },
      {{grouped[0], grouped[1], grouped[2], {2}}},
      [](Arrays in) {
        return attended(in[0], in[1], in[2], 0, [&](std::int64_t b, auto, std::int64_t q, std::int64_t k) {
          const auto length = static_cast<std::int64_t>(in[3].values[static_cast<std::size_t>(b)]),
                     place = q + length - 2;
          return allow(k < length && k <= place && k >= place - 1);
        });
      });
  lengths.operands.push_back({.low = 0, .high = 3, .dtype = i64, .has_gradient = false});
  return {past, lengths};
}

/// The gradients by queries, keys and values of one example after the other, of what has time before heads.
Array gradients_of_attended(Arrays in, bool causal, double scale) {
  const Array &q = in[0], &k = in[1], &v = in[2], &dy = in[3];
  const std::int64_t batch = q.shape[0], queries = q.shape[1], heads = q.shape[2], width = q.shape[3];
  const std::int64_t keys = k.shape[1], groups = k.shape[2], out = v.shape[3], shared = heads / groups;
  const std::int64_t by_keys = queries * heads * width, by_values = by_keys + keys * groups * width;
  const std::int64_t all = by_values + keys * groups * out;
  Array result{{batch, all}, std::vector<double>(static_cast<std::size_t>(batch * all))};
  const auto sum = [&](std::int64_t b, std::int64_t i) -> double& {
    return result.values[static_cast<std::size_t>(b * all + i)];
  };
  for (std::int64_t b = 0; b < batch; ++b)
    for (std::int64_t h = 0; h < heads; ++h)
      for (std::int64_t i = 0; i < queries; ++i) {
        const std::int64_t g = h / shared;
        std::vector<double> scores, gradients;
        for (std::int64_t j = 0; j < keys; ++j) {
          double score = causal && j > i ? -infinity : 0, gradient = 0;
          for (std::int64_t d = 0; d < width; ++d) score += scale * at(q, {b, i, h, d}) * at(k, {b, j, g, d});
          for (std::int64_t d = 0; d < out; ++d) gradient += at(dy, {b, i, h, d}) * at(v, {b, j, g, d});
          scores.push_back(score);
          gradients.push_back(gradient);
        }
        const std::vector<double> weights = weights_of(scores);
        double mean = 0;
        for (std::size_t j = 0; j < weights.size(); ++j) mean += weights[j] * gradients[j];
        for (std::int64_t j = 0; j < keys; ++j) {
          const double w = weights[static_cast<std::size_t>(j)],
                       by_score = w * (gradients[static_cast<std::size_t>(j)] - mean) * scale;
          for (std::int64_t d = 0; d < width; ++d) {
            sum(b, (i * heads + h) * width + d) += by_score * at(k, {b, j, g, d});
            sum(b, by_keys + (j * groups + g) * width + d) += by_score * at(q, {b, i, h, d});
          }
          for (std::int64_t d = 0; d < out; ++d)
            sum(b, by_values + (j * groups + g) * out + d) += w * at(dy, {b, i, h, d});
        }
      }
  return result;
}

std::vector<Row> gradients() {
  Row plain = attention(
      "attention_gradient", [](In in) { return apply(AttentionGradient{.scale = 0.5}, in[0], in[1], in[2], in[3]); },
      {{{1, 3, 2, 2}, {1, 4, 2, 2}, {1, 4, 2, 3}, {1, 3, 2, 3}},
       {{2, 2, 4, 1}, {2, 3, 2, 1}, {2, 3, 2, 2}, {2, 2, 4, 2}},
       {{1, 2, 1, 2}, {1, 0, 1, 2}, {1, 0, 1, 1}, {1, 2, 1, 1}},
       {{1, 0, 2, 2}, {1, 3, 1, 2}, {1, 3, 1, 2}, {1, 0, 2, 2}}},
      [](Arrays in) { return gradients_of_attended(in, false, 0.5); });
  Row causal = attention(
      "attention_gradient, causal",
      [](In in) { return apply(AttentionGradient{.scale = 0.5, .causal = true}, in[0], in[1], in[2], in[3]); },
      {{{1, 4, 2, 2}, {1, 3, 1, 2}, {1, 3, 1, 2}, {1, 4, 2, 2}}},
      [](Arrays in) { return gradients_of_attended(in, true, 0.5); });
  for (Row* row : {&plain, &causal}) {
    row->covers = {"attention_gradient"};
    row->operands.assign(4, {-1, 1});
    row->takes_narrow = false;  // as for products, which are cast
  }
  const auto ones_of = [](const Shape& shape, DType t = f32) {
    return to_tensor({shape, std::vector<double>(static_cast<std::size_t>(shape.size()), 1)}, t);
  };
  const Tensor q = ones_of({1, 3, 2, 2}), odd = ones_of({1, 3, 3, 2}), mask = ones_of({3, 3});
  plain.mistakes = {{[=] { apply(BlockedAttention{}, q, q); }, "operands"},
                    {[=] { apply(BlockedAttention{}, q, odd, odd); }, "multiple"},
                    {[=] { apply(BlockedAttention{.masked = true}, q, q, q, mask); }, "mask"},
                    {[=] { apply(AttentionGradient{}, q, q, q, odd); }, "cotangent"}};
  return {plain, causal};
}

/// Both elements of a pair turn by the angle of their row in the tables.
Array rotated(const Array& x, const Array& cosine, const Array& sine, std::int64_t width, bool interleaved,
              const std::function<std::int64_t(Index)>& row) {
  Array y = x;
  const std::int64_t half = width / 2;
  for_each_index(x.shape, [&](Index i, std::int64_t flat) {
    const std::int64_t d = i[3];
    if (d >= width) return;
    const std::int64_t pair = interleaved ? d / 2 : d % half;
    const bool second = interleaved ? d % 2 : d >= half;
    const std::int64_t other = flat + (second ? -1 : 1) * (interleaved ? 1 : half);
    const double c = cosine.values[static_cast<std::size_t>(row(i) * half + pair)];
    const double s = sine.values[static_cast<std::size_t>(row(i) * half + pair)];
    const double own = x.values[static_cast<std::size_t>(flat)], its = x.values[static_cast<std::size_t>(other)];
    y.values[static_cast<std::size_t>(flat)] = second ? own * c + its * s : own * c - its * s;
  });
  return y;
}

std::vector<Row> rotary() {
  Row halves = attention(
      "rotary_embedding", [](In in) { return rotary_embedding(in[0], in[1], in[2]); },
      {{{1, 2, 3, 4}, {3, 2}, {3, 2}}, {{2, 1, 2, 6}, {2, 3}, {2, 3}}},
      [](Arrays in) { return rotated(in[0], in[1], in[2], in[0].shape[3], false, [](Index i) { return i[2]; }); });
  Row pairs = attention(
      "rotary_embedding of neighbours, by positions",
      [](In in) {
        return rotary_embedding(in[0], in[1], in[2], {.positions = given(in[3]), .interleaved = true, .width = 4});
      },
      {{{2, 2, 3, 6}, {5, 2}, {5, 2}, {2, 3}}},
      [](Arrays in) {
        return rotated(in[0], in[1], in[2], 4, true,
                       [&](Index i) { return static_cast<std::int64_t>(at(in[3], {i[0], i[2]})); });
      });
  pairs.operands.push_back({.low = 0, .high = 4, .dtype = i64, .has_gradient = false});
  halves.covers = pairs.covers = {"concat"};
  const auto ones_of = [](const Shape& shape) {
    return to_tensor({shape, std::vector<double>(static_cast<std::size_t>(shape.size()), 1)}, f32);
  };
  const Tensor x = ones_of({1, 2, 3, 4}), table = ones_of({3, 2}), narrow = ones_of({3, 1}),
               odd = ones_of({1, 2, 3, 5});
  halves.mistakes = {{[=] { rotary_embedding(x, table, narrow); }, "sine"},
                     {[=] { rotary_embedding(odd, table, table); }, "even"},
                     {[=] { rotary_embedding(table, table, table); }, "[batch, heads, time, width]"}};
  return {halves, pairs};
}

/// By the definition, a head at a time.
Array linear_attended(Arrays in, std::int64_t heads, std::int64_t groups, bool gated) {
  const Array &q = in[0], &k = in[1], &v = in[2];
  const std::int64_t batch = q.shape[0], time = q.shape[1], width = q.shape[2] / heads, out = v.shape[2] / groups;
  Array y{{batch, time, heads * out}, std::vector<double>(static_cast<std::size_t>(batch * time * heads * out))};
  for (std::int64_t b = 0; b < batch; ++b)
    for (std::int64_t h = 0; h < heads; ++h)
      for (std::int64_t j = 0; j < out; ++j) {
        const std::int64_t g = h / (heads / groups);
        std::vector<double> column(static_cast<std::size_t>(width));  // of the state
        for (std::int64_t t = 0; t < time; ++t) {
          double read = 0, sum = 0, written = at(v, {b, t, g * out + j});
          for (std::int64_t i = 0; i < width && gated; ++i) {
            double& cell = column[static_cast<std::size_t>(i)];
            cell *= std::exp(at(in[3], {b, t, g * width + i}));
            read += cell * at(k, {b, t, g * width + i});
          }
          if (gated) written = at(in[4], {b, t, g}) * (written - read);
          for (std::int64_t i = 0; i < width; ++i) {
            double& cell = column[static_cast<std::size_t>(i)];
            cell += at(k, {b, t, g * width + i}) * written;
            sum += cell * at(q, {b, t, h * width + i});
          }
          y.values[static_cast<std::size_t>((b * time + t) * heads * out + h * out + j)] =
              sum / std::sqrt(static_cast<double>(width));
        }
      }
  return y;
}

std::vector<Row> carried() {
  const Row plain = attention(
      "linear_attention",
      [](In in) { return linear_attention(in[0], in[1], in[2], {.heads = 2, .key_heads = 1}).output; },
      {{{1, 3, 4}, {1, 3, 2}, {1, 3, 3}}}, [](Arrays in) { return linear_attended(in, 2, 1, false); });
  Row gated = attention(
      "linear_attention with decay and the delta rule",
      [](In in) {
        return linear_attention(in[0], in[1], in[2],
                                {.heads = 2, .key_heads = 2, .decay = given(in[3]), .beta = given(in[4])})
            .output;
      },
      {{{2, 2, 4}, {2, 2, 4}, {2, 2, 2}, {2, 2, 4}, {2, 2, 2}}},
      [](Arrays in) { return linear_attended(in, 2, 2, true); });
  gated.operands = {{-1, 1}, {-1, 1}, {-1, 1}, {-1, 0}, {0, 1}};
  std::vector<Row> rows{plain, gated};
  for (Row& row : rows) row.covers = {"scan"};
  return rows;
}

const bool registered = add_rows({plain()}) && add_rows(masked()) && add_rows(cached()) && add_rows(gradients()) &&
                        add_rows(rotary()) && add_rows(carried());

}  // namespace
}  // namespace gradus::rows::rows_attention
