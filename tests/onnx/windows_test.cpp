/// Pooling and convolution by the formulas of the specification: auto_pad, ceil_mode, dilations, strides and pads in
/// all combinations, of sizes and of values.
#include <gtest/gtest.h>
#include <cmath>
#include "tests/onnx/sample_models.h"

namespace gradus::onnx::windows_test {
namespace {

struct Case {
  std::int64_t size, kernel, stride, dilation;
  std::string auto_pad;
  bool ceil = false;
  std::int64_t before = 0, after = 0;  // of NOTSET
  std::int64_t reach() const { return (kernel - 1) * dilation + 1; }
  friend std::ostream& operator<<(std::ostream& out, const Case& c) {
    return out << c.auto_pad << " size " << c.size << " kernel " << c.kernel << " stride " << c.stride << " dilation "
               << c.dilation << " ceil " << c.ceil << " pads " << c.before << ' ' << c.after;
  }
};

struct Layout {
  std::int64_t windows, before, after;
};

/// The text of MaxPool, AveragePool, LpPool and Conv; `ceil` is of the first three.
Layout layout_of(const Case& c) {
  if (c.auto_pad == "VALID") return {(c.size - c.reach()) / c.stride + 1, 0, 0};
  if (c.auto_pad == "NOTSET") {
    const std::int64_t room = c.size + c.before + c.after - c.reach();
    std::int64_t windows = room / c.stride + 1;
    if (c.ceil && room % c.stride != 0) ++windows;
    if (c.ceil && (windows - 1) * c.stride >= c.size + c.before) --windows;
    return {windows, c.before, c.after};
  }
  const std::int64_t windows = (c.size + c.stride - 1) / c.stride;
  const std::int64_t total = std::max<std::int64_t>((windows - 1) * c.stride + c.reach() - c.size, 0);
  const std::int64_t less = total / 2;
  return c.auto_pad == "SAME_UPPER" ? Layout{windows, less, total - less} : Layout{windows, total - less, less};
}

/// `taps`: the elements of a window; `all`: its taps within the padded input.
template <class Reduce> std::vector<double> expected(const Case& c, const std::vector<float>& x, const Reduce& reduce) {
  const Layout layout = layout_of(c);
  std::vector<double> out;
  for (std::int64_t w = 0; w < layout.windows; ++w) {
    std::vector<double> taps;
    std::int64_t all = 0;
    for (std::int64_t k = 0; k < c.kernel; ++k) {
      const std::int64_t at = w * c.stride + k * c.dilation - layout.before;
      if (at >= 0 && at < c.size) taps.push_back(static_cast<double>(x[static_cast<std::size_t>(at)]));
      all += at < c.size + layout.after;
    }
    out.push_back(reduce(taps, all));
  }
  return out;
}

std::vector<Case> cases(bool with_ceil) {
  std::vector<Case> all;
  for (const std::int64_t size : {5, 7, 10})
    for (const std::int64_t kernel : {1, 2, 3})
      for (const std::int64_t stride : {1, 2, 3, 4})
        for (const std::int64_t dilation : {1, 2})
          for (const bool ceil : {false, true}) {
            if (ceil && !with_ceil) continue;
            const Case c{size, kernel, stride, dilation, "VALID", ceil};
            if (c.reach() > size) continue;
            all.push_back(c);
            for (const char* automatic : {"SAME_UPPER", "SAME_LOWER", "NOTSET"}) {
              all.push_back(c);
              all.back().auto_pad = automatic;
            }
            for (const auto& [before, after] : {std::pair{1, 0}, {0, 1}, {1, 1}}) {
              if (kernel <= std::max(before, after)) continue;  // pads are smaller than a kernel
              all.push_back(c);
              all.back().auto_pad = "NOTSET";
              all.back().before = before;
              all.back().after = after;
            }
          }
  return all;
}

std::vector<Attribute> attributes_of(const Case& c) {
  std::vector<Attribute> all{integers("kernel_shape", {c.kernel}), integers("strides", {c.stride}),
                             integers("dilations", {c.dilation}), word("auto_pad", c.auto_pad)};
  if (c.auto_pad == "NOTSET") all.push_back(integers("pads", {c.before, c.after}));
  return all;
}

std::vector<float> numbers(std::int64_t n) {
  std::vector<float> x;
  for (std::int64_t i = 0; i < n; ++i) x.push_back(static_cast<float>((i * 7) % 5) - 1.5f);
  return x;
}

template <class Reduce>
void check_pooling(const std::string& op, const std::vector<Attribute>& more, const Reduce& reduce) {
  for (const Case& c : cases(true)) {
    SCOPED_TRACE(testing::Message() << op << ' ' << c);
    std::vector<Attribute> attributes = attributes_of(c);
    attributes.push_back(integer("ceil_mode", c.ceil));
    attributes.insert(attributes.end(), more.begin(), more.end());
    const std::vector<float> x = numbers(c.size);
    const Model model =
        model_of(graph({node(op, {"x"}, {"y"}, attributes)}, {port("x", f32, Shape{1, 1, c.size})}, {port("y")}), 22);
    const std::vector<float> y = model(from_values(x, {1, 1, c.size})).to_vector<float>();
    const std::vector<double> wanted = expected(c, x, reduce);
    ASSERT_EQ(y.size(), wanted.size());
    for (std::size_t i = 0; i < y.size(); ++i)
      if (std::isfinite(wanted[i])) { EXPECT_NEAR(static_cast<double>(y[i]), wanted[i], 1e-5) << i; }
  }
}

using Taps = std::vector<double>;
double sum_of(const Taps& taps) {
  double sum = 0;
  for (const double x : taps) sum += x;
  return sum;
}

TEST(OnnxWindows, MaxPool) {
  check_pooling("MaxPool", {}, [](const Taps& taps, std::int64_t) {
    double most = -INFINITY;
    for (const double x : taps) most = std::max(most, x);
    return most;
  });
}

TEST(OnnxWindows, AveragePool) {
  check_pooling("AveragePool", {}, [](const Taps& taps, std::int64_t) {
    return taps.empty() ? NAN : sum_of(taps) / static_cast<double>(taps.size());
  });
  check_pooling("AveragePool", {integer("count_include_pad", 1)}, [](const Taps& taps, std::int64_t all) {
    return all == 0 ? NAN : sum_of(taps) / static_cast<double>(all);
  });
}

TEST(OnnxWindows, LpPool) {
  check_pooling("LpPool", {integer("p", 2)}, [](const Taps& taps, std::int64_t) {
    double sum = 0;
    for (const double x : taps) sum += x * x;
    return std::sqrt(sum);
  });
}

TEST(OnnxWindows, Conv) {
  for (const Case& c : cases(false)) {
    SCOPED_TRACE(testing::Message() << c);
    const std::vector<float> x = numbers(c.size);
    const Model model =
        model_of(graph({node("Conv", {"x", "w"}, {"y"}, attributes_of(c))}, {port("x", f32, Shape{1, 1, c.size})},
                       {port("y")}, {{"w", ones({1, 1, c.kernel})}}),
                 22);
    const std::vector<float> y = model(from_values(x, {1, 1, c.size})).to_vector<float>();
    const std::vector<double> wanted = expected(c, x, [](const Taps& taps, std::int64_t) { return sum_of(taps); });
    ASSERT_EQ(y.size(), wanted.size());
    for (std::size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(static_cast<double>(y[i]), wanted[i], 1e-5) << i;
  }
}

/// Each element adds the kernel from place * stride on; pads cut the result, auto_pad SAME to size * stride, of which
/// SAME_UPPER cuts the odd one at the end.
TEST(OnnxWindows, ConvTranspose) {
  for (const Case& c : cases(false)) {
    SCOPED_TRACE(testing::Message() << c);
    const std::vector<float> x = numbers(c.size);
    const std::int64_t whole = c.stride * (c.size - 1) + c.reach();
    std::vector<double> sums(static_cast<std::size_t>(std::max(whole, c.size * c.stride)));
    for (std::int64_t i = 0; i < c.size; ++i)
      for (std::int64_t k = 0; k < c.kernel; ++k)
        sums[static_cast<std::size_t>(i * c.stride + k * c.dilation)] +=
            static_cast<double>(x[static_cast<std::size_t>(i)]);
    std::int64_t before = c.before, size = whole - c.before - c.after;
    if (c.auto_pad.starts_with("SAME")) {
      size = c.size * c.stride;
      const std::int64_t total = std::max<std::int64_t>(whole - size, 0);
      before = c.auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
    }
    const Model model =
        model_of(graph({node("ConvTranspose", {"x", "w"}, {"y"}, attributes_of(c))},
                       {port("x", f32, Shape{1, 1, c.size})}, {port("y")}, {{"w", ones({1, 1, c.kernel})}}),
                 22);
    const std::vector<float> y = model(from_values(x, {1, 1, c.size})).to_vector<float>();
    ASSERT_EQ(std::ssize(y), size);
    for (std::int64_t i = 0; i < size; ++i)
      EXPECT_NEAR(static_cast<double>(y[static_cast<std::size_t>(i)]), sums[static_cast<std::size_t>(i + before)],
                  1e-5);
  }
}

}  // namespace
}  // namespace gradus::onnx::windows_test
