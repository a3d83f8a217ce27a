/// Op rows with sizes that are known at each call alone, on the plugin's device: what is written for one of the sizes
/// of an open program, value and gradients, is what the processor computes at that size. Of the usual tests the rows
/// with windows, whose padding depends on the size; of the longer ones (GRADUS_XLA_ROWS=all) all that are not
/// elementwise.
#include <cstdlib>
#include "gradus/function/traced_function.h"
#include "tests/ops/row_fixture.h"
#include "tests/xla/plugin.h"

namespace gradus::rows::open_sizes_test {
namespace {

using Shapes = std::vector<Shape>;

std::vector<Row> wanted_rows() {
  const char* const asked = std::getenv("GRADUS_XLA_ROWS");
  const bool all = asked && std::string_view(asked) == "all";
  constexpr std::string_view with_windows[] = {"conv1d", "conv2d", "depthwise_conv2d", "max_pool", "avg_pool"};
  std::vector<Row> wanted = all_rows();
  std::erase_if(wanted, [&](const Row& row) {
    return row.elementwise || (!all && std::ranges::none_of(with_windows, [&](std::string_view name) {
             return row.name.starts_with(name);
           }));
  });
  return wanted;
}

class PluginOpenSizes : public RowTest {
 protected:
  void SetUp() override {
    if (testing_plugin::file().empty()) GTEST_SKIP() << "NOT TESTED: there is no PJRT plugin for the processor";
    load_plugin(testing_plugin::file(), "xla");
  }
  DType dtype() const { return row().dtypes.front(); }

  /// Nothing: the op does not take such sizes.
  std::vector<Array> numbers_of_known(const Case& c) const {
    std::vector<Array> numbers;
    try {
      for (const Tensor& x : results(c.inputs, dtype())) numbers.push_back(to_array(x));
      return numbers;
    } catch (const Error&) { return {}; } catch (const std::out_of_range&) {
      return {};  // the row reads a result that there is not at this size
    }
  }

  static Shapes resized(Shapes shapes, std::int64_t open, std::int64_t n) {
    for (Shape& shape : shapes)
      for (int axis = 0; axis < shape.rank(); ++axis)
        if (shape[axis] == open) shape.set(axis, n);
    return shapes;
  }
  /// Of the first operand: the last dimension but one if there are more than two, else the last, or the first.
  static std::int64_t opened_of(const Shapes& shapes) {
    if (shapes.empty() || shapes[0].rank() == 0) return 0;  // it makes numbers of nothing, or of scalars
    const Shape& first = shapes[0];
    for (const int axis : {first.rank() > 2 ? first.rank() - 2 : first.rank() - 1, first.rank() - 1, 0})
      if (axis >= 0 && first[axis] > 1) return first[axis];
    return 0;
  }

  void expect_near(const Array& got, const Array& want, bool is_float) const {
    ASSERT_EQ(got.shape, want.shape);
    double scale = 0;
    for (const double w : want.values)
      if (std::isfinite(w)) scale = std::max(scale, std::abs(w));
    const double bound =
        is_float ? 256 * std::max(row().tolerance, 1.0) * epsilon_of(dtype()) * std::max(scale, 1e-3) : 0;
    for (std::size_t i = 0; i < want.values.size(); ++i) {
      const double g = got.values[i], w = want.values[i];
      if (g == w || (std::isnan(g) && std::isnan(w))) continue;
      ASSERT_LE(std::abs(g - w), bound) << "element " << i << ": the device gives " << g << ", the processor " << w;
    }
  }

  void check(const Shapes& shapes, std::int64_t open) {
    std::vector<Spec> specs;
    const Shapes declared = resized(shapes, open, any_size);
    for (std::size_t i = 0; i < shapes.size(); ++i) specs.push_back({dtype_of(i, dtype()), declared[i]});
    TracedFunction traced({.name = row().name, .input_signature = specs}, nullptr, 0);
    for (const std::int64_t n : {open + 1, open, 2 * open + 1}) {
      const Case c = make_case(resized(shapes, open, n), dtype());
      const std::vector<Array> want = numbers_of_known(c);
      if (want.empty()) continue;
      SCOPED_TRACE(text(row().name, ' ', listed(c.shapes), "with ", open, " open"));
      for (int call = 0; call < 2; ++call) {  // the first of a program may be the processor's
        const DeviceScope scope(testing_plugin::device_of_plugin());
        const Called called = traced.call(c.inputs, {}, [&](In in) { return Called{results(in, dtype()), {}}; });
        ASSERT_EQ(called.tensors.size(), want.size());
        for (std::size_t i = 0; i < want.size(); ++i)
          expect_near(to_array(called.tensors[i]), want[i], is_floating(called.tensors[i].dtype()));
      }
    }
  }
};

TEST_P(PluginOpenSizes, GiveWhatTheProcessorGives) {
  const auto some = std::ranges::find_if(row().shapes, [](const Shapes& shapes) {
    return opened_of(shapes) > 0 &&
           std::ranges::all_of(shapes, [](const Shape& shape) { return shape.size() > 0 && shape.size() <= 64; });
  });
  if (some == row().shapes.end()) GTEST_SKIP() << "no small case";
  try {
    check(*some, opened_of(*some));
  } catch (const Unavailable& error) {
    EXPECT_NE(std::string(error.what()).find("cannot run on the device"), std::string::npos) << error.what();
  }
}
INSTANTIATE_TEST_SUITE_P(Rows, PluginOpenSizes, ::testing::ValuesIn(wanted_rows()), test_name);

}  // namespace
}  // namespace gradus::rows::open_sizes_test
