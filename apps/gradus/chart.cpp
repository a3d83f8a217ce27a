/// Colours follow the reader's light or dark setting.
#include "apps/gradus/chart.h"
#include <algorithm>
#include <array>
#include <cmath>
#include <iomanip>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include "gradus/base/error.h"
#include "gradus/base/lines.h"
#include "gradus/formats/json.h"
#include "gradus/formats/svg.h"

namespace gradus::command {
namespace {

constexpr double width = 560, height = 260, left = 64, right = 16, top = 12, bottom = 40;
constexpr std::array colours{"#2563eb", "#dc2626", "#059669", "#9333ea"};

struct Range {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  void take(double v) {
    if (!std::isfinite(v)) return;
    low = std::min(low, v);
    high = std::max(high, v);
  }
  /// Never empty, with some air above and below.
  Range padded() const {
    if (!(low <= high)) return {0, 1};
    const double air = low < high ? (high - low) * 0.08 : low == 0 ? 0.1 : std::abs(low) * 0.1;
    return {low - air, high + air};
  }
};

class Plot {
 public:
  explicit Plot(const Chart& chart) : chart_(chart) {
    for (const Curve& curve : chart.curves) {
      epochs_ = std::max(epochs_, curve.values.size());
      for (double v : curve.values) range_.take(v);
    }
    range_ = range_.padded();
  }

  std::string svg() const {
    TextStream out;
    out << "<svg class=\"chart\" viewBox=\"0 0 " << width << ' ' << height << "\" role=\"img\" aria-label=\""
        << svg::escaped(chart_.title) << "\" data-epochs=\"" << epochs_ << "\">\n";
    axes(out);
    for (std::size_t i = 0; i < chart_.curves.size(); ++i) curve(out, chart_.curves[i], colours[i % colours.size()]);
    legend(out);
    out << "<line class=\"cursor\" y1=\"" << top << "\" y2=\"" << height - bottom << "\" visibility=\"hidden\"/>"
        << "<text class=\"reading\" x=\"" << width - right << "\" y=\"" << top + 10
        << "\" text-anchor=\"end\"></text>\n</svg>\n";
    return std::move(out).str();
  }

 private:
  double x(std::size_t epoch) const {
    const double share = epochs_ < 2 ? 0.5 : static_cast<double>(epoch) / static_cast<double>(epochs_ - 1);
    return left + share * (width - left - right);
  }
  double y(double v) const { return top + (range_.high - v) / (range_.high - range_.low) * (height - top - bottom); }

  void axes(std::ostream& out) const {
    const double step = svg::round_step((range_.high - range_.low) / 5);  // about five of them
    for (double v = std::ceil(range_.low / step) * step; v <= range_.high; v += step)
      out << "<line class=\"grid\" x1=\"" << left << "\" x2=\"" << width - right << "\" y1=\"" << y(v) << "\" y2=\""
          << y(v) << "\"/><text x=\"" << left - 8 << "\" y=\"" << y(v) + 4 << "\" text-anchor=\"end\">"
          << (std::abs(v) < step / 2 ? 0 : v) << "</text>\n";
    const std::size_t every = std::max<std::size_t>(1, (epochs_ + 9) / 10);
    for (std::size_t e = 0; e < epochs_; e += every)
      out << "<text x=\"" << x(e) << "\" y=\"" << height - bottom + 18 << "\" text-anchor=\"middle\">" << e + 1
          << "</text>\n";
    out << "<text x=\"" << (left + width - right) / 2 << "\" y=\"" << height - 6
        << "\" text-anchor=\"middle\">epoch</text>\n";
  }

  void curve(std::ostream& out, const Curve& curve, const char* colour) const {
    out << "<polyline class=\"curve\" fill=\"none\" stroke=\"" << colour << "\" stroke-width=\"2\" points=\"";
    for (std::size_t e = 0; e < curve.values.size(); ++e)
      if (std::isfinite(curve.values[e])) out << x(e) << ',' << y(curve.values[e]) << ' ';
    out << "\"/>\n";
    const char* radius = curve.values.size() > 60 ? "1.5" : "3";
    for (std::size_t e = 0; e < curve.values.size(); ++e)
      if (std::isfinite(curve.values[e]))
        out << "<circle data-epoch=\"" << e << "\" data-curve=\"" << svg::escaped(curve.name) << "\" data-value=\""
            << curve.values[e] << "\" r=\"" << radius << "\" fill=\"" << colour << "\" cx=\"" << x(e) << "\" cy=\""
            << y(curve.values[e]) << "\"><title>" << svg::escaped(curve.name) << ", epoch " << e + 1 << ": "
            << curve.values[e] << "</title></circle>\n";
  }

  void legend(std::ostream& out) const {
    double at = left + 8;
    for (std::size_t i = 0; i < chart_.curves.size(); ++i) {
      out << "<rect x=\"" << at << "\" y=\"" << top << "\" width=\"10\" height=\"10\" fill=\""
          << colours[i % colours.size()] << "\"/><text x=\"" << at + 14 << "\" y=\"" << top + 10 << "\">"
          << svg::escaped(chart_.curves[i].name) << "</text>\n";
      at += 40 + 7 * static_cast<double>(chart_.curves[i].name.size());
    }
  }

  const Chart& chart_;
  std::size_t epochs_ = 0;
  Range range_;
};

/// Numbers by name, one an epoch; missing ones are NaN.
using Series = std::map<std::string, std::vector<double>>;

Series series_of(const std::string& metrics) {
  Series all;
  std::size_t epochs = 0;
  for (std::string_view rest = metrics; !rest.empty();) {
    const auto epoch = json_if_any(take_line(rest));
    if (!epoch.is_object()) continue;
    ++epochs;
    for (const auto& [name, value] : epoch.items()) {
      std::vector<double>& values = all[name];
      values.resize(epochs, std::numeric_limits<double>::quiet_NaN());
      if (value.is_number()) values.back() = value.get<double>();
    }
  }
  return all;
}

}  // namespace

std::string svg_of(const Chart& chart) { return Plot(chart).svg(); }

std::vector<Chart> charts_of(const std::string& metrics) {
  const Series series = series_of(metrics);
  std::vector<std::string> names{"loss"};
  for (const auto& [name, values] : series)
    if (name != "loss" && name != "epoch" && name != "learning_rate" && name != "seconds" &&
        !name.starts_with("validation_"))
      names.push_back(name);
  names.insert(names.end(), {"learning_rate", "seconds"});
  std::vector<Chart> charts;
  for (const std::string& name : names) {
    const auto training = series.find(name);
    if (training == series.end()) continue;
    std::string title = name == "seconds" ? "seconds an epoch" : name;
    std::ranges::replace(title, '_', ' ');
    charts.push_back({title, {{"training", training->second}}});
    if (const auto test = series.find("validation_" + name); test != series.end())
      charts.back().curves.push_back({"test", test->second});
  }
  return charts;
}

}  // namespace gradus::command
