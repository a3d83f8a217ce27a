/// Rows of the normalisations, against plain loops.
#include <cmath>
#include "gradus/ops/normalization.h"
#include "tests/ops/rows.h"

namespace gradus::rows::rows_normalization {
namespace {

using Index = std::span<const std::int64_t>;

/// An operand that may be left out, given.
const Tensor& given(const Tensor& x) {
  (void)x.spec();
  return x;
}

/// The flat indices of the elements that share a group with each other: group_of(index) tells which.
Array by_groups(const Array& x, const std::function<std::int64_t(Index)>& group_of,
                const std::function<void(std::vector<double>&)>& normalize) {
  std::vector<std::vector<std::size_t>> members;
  for_each_index(x.shape, [&](Index index, std::int64_t flat) {
    const auto group = static_cast<std::size_t>(group_of(index));
    if (group >= members.size()) members.resize(group + 1);
    members[group].push_back(static_cast<std::size_t>(flat));
  });
  Array y = x;
  for (const auto& group : members) {
    std::vector<double> values;
    for (std::size_t i : group) values.push_back(x.values[i]);
    normalize(values);
    for (std::size_t k = 0; k < group.size(); ++k) y.values[group[k]] = values[k];
  }
  return y;
}

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (double v : values) sum += v;
  return sum / static_cast<double>(values.size());
}
double variance_of(const std::vector<double>& values) {
  const double mean = mean_of(values);
  double sum = 0;
  for (double v : values) sum += (v - mean) * (v - mean);
  return sum / static_cast<double>(values.size());
}
void standardize(std::vector<double>& values, double epsilon) {
  const double mean = mean_of(values), deviation = std::sqrt(variance_of(values) + epsilon);
  for (double& v : values) v = (v - mean) / deviation;
}

/// y * scale[channel] + offset[channel], channels at `axis`.
Array scaled(Array y, const Array& scale, const Array& offset, int axis) {
  for_each_index(y.shape, [&](Index index, std::int64_t flat) {
    const auto c = static_cast<std::size_t>(index[static_cast<std::size_t>(y.shape.normalized(axis))]);
    double& v = y.values[static_cast<std::size_t>(flat)];
    v = v * scale.values[c] + offset.values[c];
  });
  return y;
}

Row normalizing(std::string name, std::function<Tensor(In)> apply, std::vector<std::vector<Shape>> shapes,
                std::function<Array(Arrays)> reference) {
  Row row{.name = std::move(name), .covers = {"sum"}, .apply = std::move(apply)};
  row.operands.resize(shapes.front().size());
  row.shapes = std::move(shapes);
  row.reference = std::move(reference);
  row.tolerance = 64;
  row.magnitude = 4;
  row.slack = 4;
  return row;
}

std::vector<Row> by_channels() {
  Row batch = normalizing(
      "batch_normalization",
      [](In in) {
        return batch_normalization(in[0], in[1], in[2], {.scale = given(in[3]), .offset = given(in[4]), .axis = 1});
      },
      {{{2, 3, 4}, {3}, {3}, {3}, {3}}, {{2, 5}, {5}, {5}, {5}, {5}}, {{0, 3}, {3}, {3}, {3}, {3}}},
      [](Arrays in) {
        Array y = in[0];
        for_each_index(y.shape, [&](Index index, std::int64_t flat) {
          const auto c = static_cast<std::size_t>(index[1]);
          double& v = y.values[static_cast<std::size_t>(flat)];
          v = (v - in[1].values[c]) / std::sqrt(in[2].values[c] + 1e-3) * in[3].values[c] + in[4].values[c];
        });
        return y;
      });
  batch.covers = {"rsqrt"};
  batch.operands[2] = {.low = 0.25, .high = 2};
  const Row training = normalizing(
      "batch_normalization in training",
      [](In in) {
        const Moments m = moments(in[0], {.axis = {0, 1}});
        return batch_normalization(in[0], m.mean, m.variance, {.scale = given(in[1]), .offset = given(in[2])});
      },
      {{{2, 3, 2}, {2}, {2}}, {{4, 2, 17}, {17}, {17}}},
      [](Arrays in) {
        const Array y =
            by_groups(in[0], [](Index i) { return i[2]; }, [](std::vector<double>& v) { standardize(v, 1e-3); });
        return scaled(y, in[1], in[2], 2);
      });
  const Row instance = normalizing(
      "instance_normalization",
      [](In in) { return instance_normalization(in[0], {.scale = given(in[1]), .offset = given(in[2]), .axis = 1}); },
      {{{2, 3, 2, 2}, {3}, {3}}, {{3, 2, 9}, {2}, {2}}},
      [](Arrays in) {
        const std::int64_t channels = in[0].shape[1];
        const Array y = by_groups(
            in[0], [&](Index i) { return i[0] * channels + i[1]; },
            [](std::vector<double>& v) { standardize(v, 1e-3); });
        return scaled(y, in[1], in[2], 1);
      });
  const Row groups = normalizing(
      "group_normalization",
      [](In in) {
        return group_normalization(in[0], 2, {.scale = given(in[1]), .offset = given(in[2]), .epsilon = 1e-2});
      },
      {{{2, 3, 4}, {4}, {4}}, {{3, 6}, {6}, {6}}},
      [](Arrays in) {
        const std::int64_t size = in[0].shape[-1] / 2;
        const Array y = by_groups(
            in[0], [&](Index i) { return i[0] * 2 + i.back() / size; },
            [](std::vector<double>& v) { standardize(v, 1e-2); });
        return scaled(y, in[1], in[2], -1);
      });
  return {batch, training, instance, groups};
}

std::vector<Row> by_rows() {
  const auto row_of = [](const Array& x) {
    return [n = x.shape.rank()](Index i) { return n == 1 ? 0 : i[0] * 100 + (n == 3 ? i[1] : 0); };
  };
  const Row layer = normalizing(
      "layer_normalization",
      [](In in) { return layer_normalization(in[0], {.scale = given(in[1]), .offset = given(in[2])}); },
      {{{3, 5}, {5}, {5}}, {{2, 3, 4}, {4}, {4}}, {{0, 3}, {3}, {3}}, {{7, 100}, {100}, {100}}},
      [=](Arrays in) {
        return scaled(by_groups(in[0], row_of(in[0]), [](std::vector<double>& v) { standardize(v, 1e-3); }), in[1],
                      in[2], -1);
      });
  Row of_planes = normalizing(
      "layer_normalization over two axes",
      [](In in) { return layer_normalization(in[0], {.scale = given(in[1]), .axis = {1, 2}, .epsilon = 1e-5}); },
      {{{3, 2, 4}, {2, 4}}},
      [](Arrays in) {
        Array y = by_groups(in[0], [](Index i) { return i[0]; }, [](std::vector<double>& v) { standardize(v, 1e-5); });
        for_each_index(y.shape, [&](Index i, std::int64_t flat) {
          y.values[static_cast<std::size_t>(flat)] *= in[1].values[static_cast<std::size_t>(i[1] * 4 + i[2])];
        });
        return y;
      });
  const Row rms = normalizing(
      "rms_normalization",
      [](In in) { return rms_normalization(in[0], {.scale = given(in[1]), .offset = given(in[2])}); },
      {{{3, 5}, {5}, {5}}, {{2, 100}, {100}, {100}}},
      [=](Arrays in) {
        const Array y = by_groups(in[0], row_of(in[0]), [](std::vector<double>& v) {
          double sum = 0;
          for (double e : v) sum += e * e;
          const double size = std::sqrt(sum / static_cast<double>(v.size()) + 1e-3);
          for (double& e : v) e /= size;
        });
        return scaled(y, in[1], in[2], -1);
      });
  Row standard = normalizing(
      "mean_variance_normalization", [](In in) { return mean_variance_normalization(in[0], {0, 2}); },
      {{{2, 3, 4}}, {{5, 2, 1}}},
      [](Arrays in) {
        return by_groups(
            in[0], [](Index i) { return i[1]; },
            [](std::vector<double>& v) {
              const double mean = mean_of(v), deviation = std::sqrt(variance_of(v)) + 1e-9;
              for (double& e : v) e = (e - mean) / deviation;
            });
      });
  // Where all of a group are alike it is as steep as 1e9.
  standard.is_smooth_at = [](Arrays in) {
    const Array variances = by_groups(
        in[0], [](Index i) { return i[1]; }, [](std::vector<double>& v) { std::ranges::fill(v, variance_of(v)); });
    return std::ranges::all_of(variances.values, [](double x) { return x > 1e-3; });
  };
  const auto to_unit = [=](std::string name, std::function<Tensor(In)> apply, int p) {
    Row row = normalizing(std::move(name), std::move(apply), {{{3, 5}}, {{4}}, {{2, 0}}, {{3, 100}}}, [=](Arrays in) {
      return by_groups(in[0], row_of(in[0]), [p](std::vector<double>& v) {
        double sum = 0;
        for (double e : v) sum += p == 1 ? std::abs(e) : e * e;
        for (double& e : v) e /= p == 1 ? sum : std::sqrt(sum);
      });
    });
    row.operands[0].gap = 0.01;
    return row;
  };
  return {layer,
          of_planes,
          rms,
          standard,
          to_unit(
              "l2_normalize", [](In in) { return l2_normalize(in[0], {-1}); }, 2),
          to_unit(
              "lp_normalize 1", [](In in) { return lp_normalize(in[0], 1); }, 1),
          to_unit("lp_normalize 2", [](In in) { return lp_normalize(in[0], 2); }, 2)};
}

std::vector<Row> by_neighbours() {
  const auto row_of = [](std::string name, std::int64_t before, std::int64_t after, bool by_radius) {
    Row row = normalizing(
        std::move(name),
        [=](In in) {
          LocalResponseOptions options{.depth_radius = before, .bias = 2, .alpha = 0.5, .beta = 0.75, .axis = 1};
          if (!by_radius) options.depth_after = after;
          return local_response_normalization(in[0], options);
        },
        {{{2, 5, 2}}, {{1, 3, 1}}, {{2, 9}}},
        [=](Arrays in) {
          Array y = in[0];
          for_each_index(y.shape, [&](Index index, std::int64_t flat) {
            const std::int64_t channels = y.shape[1], inner = y.shape.rank() == 3 ? y.shape[2] : 1;
            double sum = 0;
            for (std::int64_t c = std::max<std::int64_t>(0, index[1] - before);
                 c < std::min(channels, index[1] + after + 1); ++c) {
              const double e = in[0].values[static_cast<std::size_t>(flat + (c - index[1]) * inner)];
              sum += e * e;
            }
            y.values[static_cast<std::size_t>(flat)] /= std::pow(2 + 0.5 * sum, 0.75);
          });
          return y;
        });
    row.covers = {"concat"};
    return row;
  };
  return {row_of("local_response_normalization", 1, 1, true),
          row_of("local_response_normalization, wide", 1, 20, false)};
}

std::vector<Row> with_mistakes() {
  std::vector<Row> rows = by_rows();
  const Tensor x = to_tensor({{2, 3}, std::vector<double>(6)}, f32);
  const Tensor short_scale = to_tensor({{2}, {1, 1}}, f32), wrong_type = to_tensor({{3}, {1, 1, 1}}, f64);
  const Tensor integers = to_tensor({{2, 3}, std::vector<double>(6)}, i32);
  rows[0].mistakes = {{[=] { layer_normalization(x, {.scale = short_scale}); }, "expected [3]"},
                      {[=] { layer_normalization(x, {.scale = wrong_type}); }, "dtype"},
                      {[=] { layer_normalization(integers); }, "cast"},
                      {[=] { layer_normalization(x, {.axis = {-1, 1}}); }, "twice"},
                      {[=] { group_normalization(x, 2); }, "divides"},
                      {[=] { instance_normalization(x); }, "no axis beside"},
                      {[=] { lp_normalize(x, 3); }, "1 or 2"},
                      {[=] { local_response_normalization(x, {.depth_radius = -1}); }, "negative"}};
  return rows;
}

const bool registered = add_rows(by_channels()) && add_rows(with_mistakes()) && add_rows(by_neighbours());

}  // namespace
}  // namespace gradus::rows::rows_normalization
