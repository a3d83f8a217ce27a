/// Plain HTML; colours follow the reader's light or dark setting.
#include "apps/gradus/report.h"
#include <algorithm>
#include <array>
#include <cmath>
#include <iomanip>
#include <limits>
#include <sstream>

namespace gradus::command {
namespace {

constexpr double width = 560, height = 260, left = 64, right = 16, top = 12, bottom = 40;
constexpr std::array colours{"#2563eb", "#dc2626", "#059669", "#9333ea"};

std::string escaped(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '<') out += "&lt;";
    else if (c == '>') out += "&gt;";
    else if (c == '&') out += "&amp;";
    else if (c == '"') out += "&quot;";
    else out += c;
  }
  return out;
}

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
    const double air = low == high ? std::max(std::abs(low) * 0.1, 0.1) : (high - low) * 0.08;
    return {low - air, high + air};
  }
};

/// Round steps (1, 2 or 5 times a power of ten), about five of them.
double tick_step(const Range& range) {
  const double rough = (range.high - range.low) / 5, power = std::pow(10, std::floor(std::log10(rough)));
  for (double factor : {1.0, 2.0, 5.0})
    if (factor * power >= rough) return factor * power;
  return 10 * power;
}

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
    std::ostringstream out;
    out << "<svg viewBox=\"0 0 " << width << ' ' << height << "\" role=\"img\" aria-label=\"" << escaped(chart_.title)
        << "\">\n";
    axes(out);
    for (std::size_t i = 0; i < chart_.curves.size(); ++i) curve(out, chart_.curves[i], colours[i % colours.size()]);
    legend(out);
    out << "</svg>\n";
    return std::move(out).str();
  }

 private:
  double x(std::size_t epoch) const {
    const double share = epochs_ < 2 ? 0.5 : static_cast<double>(epoch) / static_cast<double>(epochs_ - 1);
    return left + share * (width - left - right);
  }
  double y(double v) const { return top + (range_.high - v) / (range_.high - range_.low) * (height - top - bottom); }

  void axes(std::ostream& out) const {
    const double step = tick_step(range_);
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
    out << "<polyline fill=\"none\" stroke=\"" << colour << "\" stroke-width=\"2\" points=\"";
    for (std::size_t e = 0; e < curve.values.size(); ++e)
      if (std::isfinite(curve.values[e])) out << x(e) << ',' << y(curve.values[e]) << ' ';
    out << "\"/>\n";
    for (std::size_t e = 0; e < curve.values.size(); ++e)
      if (std::isfinite(curve.values[e]))
        out << "<circle r=\"3\" fill=\"" << colour << "\" cx=\"" << x(e) << "\" cy=\"" << y(curve.values[e])
            << "\"><title>" << escaped(curve.name) << ", epoch " << e + 1 << ": " << curve.values[e]
            << "</title></circle>\n";
  }

  void legend(std::ostream& out) const {
    double at = left + 8;
    for (std::size_t i = 0; i < chart_.curves.size(); ++i) {
      out << "<rect x=\"" << at << "\" y=\"" << top << "\" width=\"10\" height=\"10\" fill=\""
          << colours[i % colours.size()] << "\"/><text x=\"" << at + 14 << "\" y=\"" << top + 10 << "\">"
          << escaped(chart_.curves[i].name) << "</text>\n";
      at += 40 + 7 * static_cast<double>(chart_.curves[i].name.size());
    }
  }

  const Chart& chart_;
  std::size_t epochs_ = 0;
  Range range_;
};

constexpr std::string_view style = R"(
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1180px; margin: 2rem auto; padding: 0 1rem; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(420px, 1fr)); gap: 1rem; }
figure { margin: 0; } figcaption { font-weight: 600; }
svg { width: 100%; height: auto; } svg text { font-size: 12px; fill: currentColor; }
.grid { stroke: currentColor; opacity: 0.15; }
table { border-collapse: collapse; } td { padding: 0.15rem 1.5rem 0.15rem 0; } td + td { font-variant-numeric: tabular-nums; }
pre { overflow-x: auto; padding: 0.75rem; border: 1px solid color-mix(in srgb, currentColor 20%, transparent); }
)";

}  // namespace

std::string to_html(const Report& report) {
  std::ostringstream out;
  out << std::setprecision(6);
  out << "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
         "content=\"width=device-width\">\n<title>"
      << escaped(report.title) << "</title>\n<style>" << style << "</style>\n</head>\n<body>\n<h1>"
      << escaped(report.title) << "</h1>\n<table>\n";
  for (const auto& [what, value] : report.facts)
    out << "<tr><td>" << escaped(what) << "</td><td>" << escaped(value) << "</td></tr>\n";
  out << "</table>\n<div class=\"charts\">\n";
  for (const Chart& chart : report.charts)
    out << "<figure>\n<figcaption>" << escaped(chart.title) << "</figcaption>\n" << Plot(chart).svg() << "</figure>\n";
  out << "</div>\n<h2>Model</h2>\n<pre>" << escaped(report.summary) << "</pre>\n<h2>Configuration</h2>\n<pre>"
      << escaped(report.configuration) << "</pre>\n</body>\n</html>\n";
  return std::move(out).str();
}

}  // namespace gradus::command
