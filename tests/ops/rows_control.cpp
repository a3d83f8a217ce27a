/// Rows of the ops that hold regions.
#include "gradus/ops/barrier.h"
#include "gradus/ops/call.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/shape.h"
#include "tests/ops/rows.h"

namespace gradus::rows {
namespace {

const std::vector<std::vector<Shape>> vectors{{{3}, {3}}, {{7}, {7}}, {{0}, {0}}, {{17}, {17}}};

std::vector<Row> calls() {
  Row call{.name = "call", .covers = {"call"}, .operands = {{}, {}}, .shapes = vectors};
  call.apply = [](In in) {
    const Tensors both =
        recomputed("test", in, [&](In x) { return Tensors{sin(x[0]) * x[1], x[0] + square(x[1]) * in[0]}; });
    return both[0] * both[1];
  };
  call.tolerance = 64;
  call.magnitude = 4;

  Row custom{.name = "custom_call", .covers = {"custom_call"}, .operands = {{}, {}}, .shapes = vectors};
  custom.apply = [](In in) {
    return with_gradient(in, [](In x) {
      const Tensor a = x[0], b = x[1];
      return WithPullback{sin(a) * b, [=](const Tensor& dy) { return Tensors{dy * b * cos(a), dy * sin(a)}; }};
    });
  };
  custom.tolerance = 64;
  custom.magnitude = 4;

  Row held{.name = "barrier", .covers = {"barrier"}, .operands = {{}, {.has_gradient = false}}, .shapes = vectors};
  held.apply = [](In in) { return barrier(in[0], in[1]) * 2; };
  return {call, custom, held};
}

const bool registered = add_rows(calls());

}  // namespace
}  // namespace gradus::rows
