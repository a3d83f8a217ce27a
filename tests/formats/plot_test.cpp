/// Pictures as SVG: where points lie, what is left out, and that it stays XML.
#include "gradus/formats/plot.h"
// GCC 12 under AddressSanitizer warns of what std::regex leaves uninitialized (GCC bug 105562).
#ifdef __clang__
#include <regex>
#else
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <regex>
#pragma GCC diagnostic warning "-Wmaybe-uninitialized"
#endif
#include <gtest/gtest.h>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include "tests/errors.h"
#include "tests/number_in.h"
#include "tests/test_directory.h"

namespace gradus::plot_test {
namespace {

/// The numbers after `name="` in every place, in order.
std::vector<double> attributes(const std::string& svg, const std::string& element, const std::string& name) {
  std::vector<double> values;
  const std::regex pattern("<" + element + " [^>]*\\b" + name + "=\"([-0-9.e]+)");
  for (std::sregex_iterator match(svg.begin(), svg.end(), pattern), end; match != end; ++match)
    values.push_back(number_in((*match)[1].str()));
  return values;
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t times = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++times;
  return times;
}

/// Every element that opens closes, and nothing stands between < and > but names and quoted values.
void expect_xml(const std::string& svg) {
  std::vector<std::string> open;
  const std::regex tag("<(/?)([a-z]+)((?: [a-zA-Z0-9:-]+=\"[^\"<]*\")*) ?(/?)>");
  std::string rest;
  std::size_t end = 0;
  for (std::sregex_iterator match(svg.begin(), svg.end(), tag), none; match != none; ++match) {
    rest += svg.substr(end, static_cast<std::size_t>(match->position()) - end);
    end = static_cast<std::size_t>(match->position() + match->length());
    if ((*match)[1].length() > 0) {
      ASSERT_FALSE(open.empty());
      EXPECT_EQ(open.back(), (*match)[2]);
      open.pop_back();
    } else if ((*match)[4].length() == 0) {
      open.push_back((*match)[2]);
    }
  }
  EXPECT_TRUE(open.empty());
  EXPECT_EQ(rest.find_first_of("<>"), std::string::npos) << rest;
}

TEST(Plot, PointsLieWhereTheirValuesSay) {
  PlotPanel panel{.title = "t", .x_label = "x", .y_label = "y"};
  panel.series = {{"a", {0, 1, 2, 3}, {5, 1, 3, 1}, true}};
  const std::string svg = to_svg({panel});
  expect_xml(svg);
  const auto x = attributes(svg, "circle", "cx"), y = attributes(svg, "circle", "cy");
  ASSERT_EQ(x.size(), 4u);
  EXPECT_NEAR(x[1] - x[0], x[2] - x[1], 0.11);
  EXPECT_NEAR(x[2] - x[1], x[3] - x[2], 0.11);
  EXPECT_LT(y[0], y[2]) << "more is higher";
  EXPECT_EQ(y[1], y[3]);
  EXPECT_NEAR(y[2] - y[0], y[1] - y[2], 0.11);
  EXPECT_NE(svg.find(">0</text>"), std::string::npos);
  EXPECT_EQ(svg.find(">-0</text>"), std::string::npos) << svg;
  panel.log_x = true;
  panel.series = {{"a", {1e-4, 1e-3, 1e-1}, {1, 2, 3}, true}};
  const auto logarithmic = attributes(to_svg({panel}), "circle", "cx");
  EXPECT_NEAR(2 * (logarithmic[1] - logarithmic[0]), logarithmic[2] - logarithmic[1], 0.21);
}

TEST(Plot, WhatCannotBeShownIsLeftOut) {
  const double nan = std::nan(""), infinite = HUGE_VAL;
  PlotPanel panel{.log_x = true};
  panel.series = {{"line", {1, 2, 3, 4, 5, 0, -1, 6}, {1, 2, nan, 3, infinite, 1, 1, 2}},
                  {"dots", {1, 2, 3}, {nan, 1, -infinite}, true}};
  const std::string svg = to_svg({panel});
  expect_xml(svg);
  EXPECT_EQ(count(svg, "<polyline"), 3u) << "gaps";
  EXPECT_EQ(count(svg, "<circle"), 1u);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
}

TEST(Plot, AnyNumbersGiveAPicture) {
  const double most = std::numeric_limits<double>::max(), least = std::numeric_limits<double>::denorm_min();
  const std::vector<std::vector<double>> values{{},      {7},           {0, 0},         {most, -most}, {most, most},
                                                {least}, {least, most}, {1, 1 + 1e-15}, {-1e-300, 0},  {1e300, 1e301}};
  for (const bool logarithmic : {false, true})
    for (const auto& x : values)
      for (const auto& y : values) {
        if (x.size() != y.size()) continue;
        const std::string svg =
            to_svg({{.log_x = logarithmic, .log_y = logarithmic, .series = {{"a", x, y}, {"b", x, y, true}}}});
        expect_xml(svg);
        EXPECT_LT(count(svg, "<text"), 60u);
        EXPECT_EQ(svg.find("nan"), std::string::npos) << svg;
        EXPECT_EQ(svg.find("=\"inf"), std::string::npos) << svg;
      }
  expect_xml(to_svg({}));
  expect_xml(to_svg(std::vector<PlotPanel>(7)));
}

TEST(Plot, TextIsEscaped) {
  const std::string bad = "<a href=\"x\">&\n";
  const std::string svg = to_svg({{.title = bad,
                                   .x_label = bad,
                                   .y_label = bad,
                                   .categories = {bad, "b"},
                                   .series = {{bad, {0, 1}, {1, 2}}},
                                   .mark = 1,
                                   .mark_label = bad}});
  expect_xml(svg);
  EXPECT_EQ(count(svg, "&lt;a href=&quot;x&quot;&gt;&amp; "), 6u);
}

TEST(Plot, Files) {
  const EmptyTestDirectory directory;
  const auto file = directory.path() / "plot.svg";
  save_svg(file, {{.series = {{"a", {1, 2}, {3, 4}}}}});
  std::ifstream in(file);
  std::string first;
  std::getline(in, first);
  EXPECT_TRUE(first.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\"")) << first;
  expect_says(error_of<InvalidArgument>([&] { save_svg("a.png", {}); }), ".svg");
  EXPECT_THROW(save_svg("/nonexistent/a.svg", {}), Unavailable);
  expect_says(error_of<InvalidArgument>([] { (void)to_svg({{.series = {{"a", {1, 2}, {3}}}}}); }), "2 x and 1 y");
}

}  // namespace
}  // namespace gradus::plot_test
