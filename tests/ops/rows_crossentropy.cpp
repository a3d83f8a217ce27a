/// Rows of the losses of tf.nn and of what lives beside them.
#include <cmath>
#include "gradus/ops/constant.h"
#include "gradus/ops/crossentropy.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/softmax.h"
#include "tests/ops/rows.h"

namespace gradus::rows::rows_crossentropy {
namespace {

Row loss(std::string name, std::function<Tensor(In)> apply, std::vector<Operand> operands,
         std::vector<std::vector<Shape>> shapes, const std::function<double(Scalars)>& reference = {}) {
  Row row{.name = std::move(name), .apply = std::move(apply), .operands = std::move(operands)};
  row.shapes = std::move(shapes);
  row.tolerance = 32, row.magnitude = 8;
  if (reference) row.reference = [reference](Arrays in) { return by_element(in, reference); };
  return row;
}

std::vector<Row> losses() {
  const std::vector<std::vector<Shape>> pairs{{{17}, {17}}, {{3, 5}, {3, 5}}, {{}, {}}, {{0}, {0}}};
  std::vector<Row> rows{
      loss(
          "sigmoid_cross_entropy_with_logits", [](In in) { return sigmoid_cross_entropy_with_logits(in[0], in[1]); },
          {{0, 1}, {-4, 4}}, pairs, [](Scalars x) { return std::log1p(std::exp(x[1])) - x[0] * x[1]; }),
      loss(
          "weighted_cross_entropy_with_logits",
          [](In in) { return weighted_cross_entropy_with_logits(in[0], in[1], in[2]); }, {{0, 1}, {-4, 4}, {0.5, 2}},
          {{{3, 5}, {3, 5}, {5}}, {{4}, {4}, {}}},
          [](Scalars x) {
            return x[2] * x[0] * std::log1p(std::exp(-x[1])) + (1 - x[0]) * std::log1p(std::exp(x[1]));
          }),
      loss("softmax_cross_entropy_with_logits",
           [](In in) { return softmax_cross_entropy_with_logits(in[0], in[1], 0); }, {{0, 1}, {-4, 4}},
           {{{3, 5}, {3, 5}}, {{4}, {4}}, {{2, 0}, {2, 0}}}),
      loss("sparse_softmax_cross_entropy_with_logits",
           [](In in) { return sparse_softmax_cross_entropy_with_logits(in[0], in[1]); },
           {{.low = 0, .high = 2, .dtype = i32, .has_gradient = false}, {-4, 4}},
           {{{3}, {3, 3}}, {{2, 2}, {2, 2, 4}}, {{0}, {0, 3}}}),
      loss(
          "log_poisson_loss", [](In in) { return log_poisson_loss(in[0], in[1]); }, {{0, 3}, {-2, 2}}, pairs,
          [](Scalars x) { return std::exp(x[1]) - x[0] * x[1]; }),
      loss(
          "log_poisson_loss in full", [](In in) { return log_poisson_loss(in[0], in[1], true); }, {{1.2, 5}, {-2, 2}},
          pairs,
          [](Scalars x) {
            return std::exp(x[1]) - x[0] * x[1] + x[0] * std::log(x[0]) - x[0] +
                   0.5 * std::log(2 * std::acos(-1.0) * x[0]);
          }),
      loss("l2_loss", [](In in) { return l2_loss(in[0]); }, {{}}, {{{3, 4}}, {{0}}, {{}}}),
  };
  rows[2].mistakes = {{[] { softmax_cross_entropy_with_logits(ones({2}), ones({3})); }, "softmax_cross_entropy"}};
  rows[3].mistakes = {
      {[] { sparse_softmax_cross_entropy_with_logits(ones({2}), ones({2, 3})); }, "sparse_softmax_cross_entropy"},
      {[] { sparse_softmax_cross_entropy_with_logits(constant({3}), ones({1, 3})).to_vector<float>(); }, ""}};
  return rows;
}

std::vector<Row> others() {
  Row rows_of_table =
      loss("embedding_lookup", [](In in) { return embedding_lookup(in[0], in[1], 1); },
           {{}, {.low = 0, .high = 3, .dtype = i32, .has_gradient = false}}, {{{4, 3}, {2, 2}}, {{4, 2}, {3}}});
  Row counts = loss("confusion_matrix", [](In in) { return confusion_matrix(in[0], in[1], 3); }, {{0, 2}, {0, 2}},
                    {{{17}, {17}}});
  counts.dtypes = {i32, i64}, counts.differentiable = false;
  Row inverted =
      loss("invert_permutation",
           [](In in) { return invert_permutation(constant({2, 0, 1}, in[0].dtype()) + in[0] * 0); }, {{0, 2}}, {{{3}}});
  inverted.dtypes = {i32, i64}, inverted.differentiable = false, inverted.takes_other_integers = false;
  return {loss("bias_add", [](In in) { return bias_add(in[0], in[1]); }, {{}, {}}, {{{2, 3}, {3}}, {{2, 2, 1}, {1}}}),
          loss("crelu", [](In in) { return crelu(in[0], 0); }, {{-2, 2, 0.2}}, {{{3, 2}}, {{0, 2}}}), rows_of_table,
          counts, inverted};
}

const bool registered = add_rows(losses()) && add_rows(others());

}  // namespace
}  // namespace gradus::rows::rows_crossentropy
