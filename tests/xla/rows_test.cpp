/// Every op row on the plugin's device against the float64 oracle: values and first gradients in one dtype; in the
/// longer tests (GRADUS_XLA_ROWS=all) in each dtype that the row claims, and also second gradients, vmap and jvp.
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <set>
#include <sstream>
#include "gradus/autodiff/jvp.h"
#include "gradus/autodiff/vjp.h"
#include "gradus/autodiff/vmap.h"
#include "gradus/backend/xla/lowering.h"
#include "gradus/graph/context.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/shape.h"
#include "tests/ops/row_fixture.h"
#include "tests/reference/oracle.h"
#include "tests/xla/on_plugin.h"
#include "tests/xla/plugin.h"

namespace gradus::rows::rows_test {
namespace {

bool asks_for_all() {
  const char* const asked = std::getenv("GRADUS_XLA_ROWS");
  return asked && std::string_view(asked) == "all";
}

/// How many rows ran, and which did not.
struct Tally {
  int passed = 0;
  std::vector<std::string> refused;
};
Tally& tally() {
  static Tally all;
  return all;
}

/// Prints it at the end; at least 97 of 100 rows have to run.
class TallyAtEnd : public ::testing::Environment {
 public:
  void TearDown() override {
    const auto rows = static_cast<int>(tally().refused.size()) + tally().passed;
    if (rows == 0) return;
    std::cout << tally().passed << " of " << rows << " rows ran on the device of the plugin; refused:";
    for (const std::string& row : tally().refused) std::cout << ' ' << row << ';';
    std::cout << std::endl;
    if (rows > 100) { EXPECT_GE(tally().passed, 0.97 * rows); }
  }
};
[[maybe_unused]] const auto* const tally_at_end = ::testing::AddGlobalTestEnvironment(new TallyAtEnd);

struct Computed {
  std::string what;
  Tensor y;
  bool is_gradient = false;
};

class PluginRows : public RowTest {
 protected:
  void SetUp() override {
    if (testing_plugin::file().empty()) GTEST_SKIP() << "NOT TESTED: there is no PJRT plugin for the processor";
    load_plugin(testing_plugin::file(), "xla");
  }

  /// A case of several elements; with transforms also the last one.
  std::vector<std::vector<Shape>> shapes_of(bool with_transforms) const {
    std::vector<std::vector<Shape>> few = few_shapes();
    if (!with_transforms) few.erase(few.begin(), few.end() - 1);
    return few;
  }

  void add(std::vector<Computed>& all, const Case& c, bool with_transforms) {
    const std::string what = text(c.dtype, " ", listed(c.shapes));
    const Tensor y = row().apply(c.inputs);
    all.push_back({"value of " + what, y});
    if (with_transforms && !c.inputs.empty()) add_vmap(all, c, what);
    if (!row().differentiable || !is_floating(c.dtype)) return;
    const Tensor dy = noise(y);
    const Tensors gradients = vjp(y, c.inputs, dy);
    for (std::size_t k = 0; k < gradients.size(); ++k) {
      if (!gradients[k].defined()) continue;
      all.push_back({text("gradient ", k, " of ", what), gradients[k], true});
      if (!with_transforms || !worth_differences(c.shapes)) continue;
      const Tensor tangent = noise(c.inputs[k]);
      if (const Tensor pushed = Pushforward(y, c.inputs[k])(tangent); pushed.defined())
        all.push_back({text("jvp ", k, " of ", what), pushed, true});
      if (!row().smooth || !is_floating(gradients[k].dtype())) continue;
      if (const Tensor second = vjp(gradients[k], {&c.inputs[k], 1}, tangent)[0]; second.defined())
        all.push_back({text("second gradient ", k, " of ", what), second, true});
    }
  }
  void add_vmap(std::vector<Computed>& all, const Case& c, const std::string& what) {
    constexpr std::int64_t n = 2;
    const Case other = make_case(c.shapes, c.dtype);
    Tensors xs;
    for (std::size_t i = 0; i < c.inputs.size(); ++i) xs.push_back(stack({c.inputs[i], other.inputs[i]}));
    const Vectorized got =
        vmap([apply = row().apply](In in) { return Tensors{apply(in)}; }, xs, std::vector<bool>(xs.size(), true), n);
    all.push_back({"vmap of " + what, got.results[0]});
  }

  /// Numbers are as good as the processor's, or as near to the oracle as the row says.
  void check(const Computed& c, const Tensor& there, const std::vector<double>& want) {
    const Array got = to_array(there), here = to_array(c.y);
    const bool is_float = is_floating(c.y.dtype());
    double worst_here = 0, scale = 0;
    for (std::size_t i = 0; i < want.size(); ++i) {
      if (!std::isfinite(want[i])) continue;
      scale = std::max(scale, std::abs(want[i]));
      if (std::isfinite(here.values[i])) worst_here = std::max(worst_here, std::abs(here.values[i] - want[i]));
    }
    const double factor = row().tolerance * epsilon_of(c.y.dtype()) * (c.is_gradient ? 64 : 2);
    for (std::size_t i = 0; i < want.size(); ++i) {
      const double g = got.values[i], h = here.values[i], w = want[i];
      if (g == h || (std::isnan(g) && std::isnan(h))) continue;
      const double size = std::max({std::abs(w), row().magnitude, c.is_gradient ? scale : 0, 1e-37});
      const double bound = is_float ? std::max(factor * size, 8 * worst_here) : 0;
      ASSERT_LE(std::abs(g - w), bound) << row().name << ", " << c.what << ", element " << i << ": the device gives "
                                        << g << ", the processor " << h << ", the oracle " << w;
    }
  }

  void run(DType t, bool with_transforms) {
    const RecordingScope keep;
    std::vector<Computed> all;
    for (const auto& shapes : shapes_of(with_transforms)) add(all, make_case(shapes, t), with_transforms);
    std::vector<Ref<Node>> roots;
    for (const Computed& c : all) roots.push_back(c.y.node());
    const Flattened flat = flatten(roots);
    Tensors inputs;
    std::vector<std::vector<double>> numbers;
    for (const Ref<Node>& node : flat.inputs) {
      inputs.push_back(Tensor(node));
      numbers.push_back(to_array(inputs.back()).values);
    }
    const Tensors there = testing_plugin::computed_there(flat.graph, inputs, testing_plugin::device_of_plugin());
    const auto want = reference::evaluate(flat.graph, numbers);
    for (std::size_t k = 0; k < all.size(); ++k) check(all[k], there[k], want[k]);
  }
};

TEST_P(PluginRows, AreRightOnTheDevice) {
  std::vector<DType> dtypes{row().dtypes.front()};
  if (asks_for_all()) {
    dtypes = row().dtypes;
    for (const DType t : row().further_dtypes()) dtypes.push_back(t);
  }
  try {
    for (const DType t : dtypes) run(t, asks_for_all());
    if (!HasFatalFailure()) ++tally().passed;
  } catch (const Unavailable& error) {
    tally().refused.push_back(row().name);
    const std::string said = error.what();
    EXPECT_TRUE(std::ranges::any_of(xla::refusals(), [&](const xla::Refusal& refusal) {
      return said.find(refusal.op) == 0 && said.find(refusal.why) != std::string::npos;
    })) << said;
    EXPECT_NE(said.find(text("device ", testing_plugin::device_of_plugin().kind)), std::string::npos) << said;
  }
}
INSTANTIATE_TEST_SUITE_P(Rows, PluginRows, ::testing::ValuesIn(all_rows()), test_name);

/// docs/stablehlo.md has the table of refused ops: a row for each reason.
TEST(PluginOps, WhatIsRefusedIsDocumented) {
  std::ifstream file(GRADUS_STABLEHLO_PAGE);
  const std::string page((std::istreambuf_iterator<char>(file)), {});
  std::string table = "| ops | why |\n|---|---|\n", why;
  for (const xla::Refusal& refusal : xla::refusals()) {
    if (why != refusal.why) table += why.empty() ? "|" : text(" | ", why, " |\n|");
    table += text(" `", refusal.op, "`");
    why = refusal.why;
  }
  table += text(" | ", why, " |\n");
  EXPECT_NE(page.find(table), std::string::npos) << "docs/stablehlo.md has to have this table:\n" << table;
}

}  // namespace
}  // namespace gradus::rows::rows_test
