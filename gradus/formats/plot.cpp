/// Axes, lines and dots in the coordinates of a panel. The colours can be told apart by the colour-blind (Okabe and
/// Ito).
#include "gradus/formats/plot.h"
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <locale>
#include "gradus/base/error.h"
#include "gradus/base/floating_point_state.h"
#include "gradus/formats/atomic_file.h"
#include "gradus/formats/svg.h"

namespace gradus {
namespace {

constexpr double width = 480, height = 300, left = 70, right = 20, top = 34, bottom = 46;
constexpr std::size_t panels_a_row = 3, most_in_legend = 8;
constexpr std::array colours{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"};

/// In one line; XML has no control characters.
std::string escaped(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  return svg::escaped(text);
}

/// Coordinates to one digit behind the point: a tenth of a pixel.
double rounded(double coordinate) { return std::round(coordinate * 10) / 10; }

/// One direction of a panel: values, their logarithms where it is logarithmic, to coordinates.
class Axis {
 public:
  Axis(bool logarithmic, double begin, double end) : logarithmic_(logarithmic), begin_(begin), end_(end) {}

  bool shows(double value) const { return std::isfinite(value) && (!logarithmic_ || value > 0); }
  void take(double value) {
    if (!shows(value)) return;
    low_ = std::min(low_, inner(value));
    high_ = std::max(high_, inner(value));
  }
  /// After the last value: some air at both ends, within what a number can be.
  void finish() {
    if (!(low_ <= high_)) low_ = 0, high_ = 1;
    const double air = half_span() > 0 ? half_span() * 0.1 : std::max(std::abs(low_) * 0.1, 0.1);
    constexpr double most = std::numeric_limits<double>::max();
    low_ = std::max(low_ - air, logarithmic_ ? -323 : -most);
    high_ = std::min(high_ + air, logarithmic_ ? 308 : most);
  }
  double operator()(double value) const { return rounded(at(inner(value))); }

  /// Values to write at the axis: powers of ten, or round steps (1, 2 or 5 times one), about five of them.
  std::vector<double> ticks() const {
    const double step =
        logarithmic_ && half_span() > 1 ? std::ceil(half_span() / 3) : svg::round_step(half_span() / 5 * 2);
    std::vector<double> values;
    for (double i = std::ceil(low_ / step); i * step <= high_ && values.size() < 20; ++i)
      values.push_back(logarithmic_ ? std::pow(10, i * step) : i * step + 0.0);  // -0 becomes 0
    return values;
  }

 private:
  double inner(double value) const { return logarithmic_ ? std::log10(value) : value; }
  /// Half, since the whole may be past the largest number.
  double half_span() const { return high_ / 2 - low_ / 2; }
  double at(double inner) const { return begin_ + (inner / 2 - low_ / 2) / half_span() * (end_ - begin_); }

  bool logarithmic_;
  double begin_, end_;
  double low_ = std::numeric_limits<double>::infinity(), high_ = -low_;
};

class Panel {
 public:
  explicit Panel(const PlotPanel& panel)
      : panel_(panel), x_(panel.log_x, left, width - right), y_(panel.log_y, height - bottom, top) {
    for (const PlotSeries& series : panel.series) {
      require(series.x.size() == series.y.size(), "to_svg: series `", series.name, "` has ", series.x.size(), " x and ",
              series.y.size(), " y");
      for (std::size_t i = 0; i < series.x.size(); ++i)
        if (shows(series, i)) x_.take(series.x[i]), y_.take(series.y[i]);
    }
    for (std::size_t i = 0; i < panel.categories.size(); ++i) x_.take(static_cast<double>(i));
    x_.finish();
    y_.finish();
  }

  void write(std::ostream& out) const {
    label(out, width / 2, 20, panel_.title, "middle", "font-weight=\"bold\"");
    axes(out);
    if (panel_.mark && x_.shows(*panel_.mark)) mark(out);
    for (std::size_t i = 0; i < panel_.series.size(); ++i) {
      const char* colour = colours[i % colours.size()];
      if (panel_.series[i].dots) dots(out, panel_.series[i], colour);
      else line(out, panel_.series[i], colour);
    }
    legend(out);
  }

 private:
  bool shows(const PlotSeries& series, std::size_t i) const { return x_.shows(series.x[i]) && y_.shows(series.y[i]); }

  static void label(std::ostream& out, double x, double y, const std::string& text, const char* anchor,
                    const char* more = "") {
    if (!text.empty())
      out << "<text x=\"" << x << "\" y=\"" << y << "\" text-anchor=\"" << anchor << "\" " << more << '>'
          << escaped(text) << "</text>\n";
  }
  static void rule(std::ostream& out, double x1, double y1, double x2, double y2, const char* colour) {
    out << "<line x1=\"" << x1 << "\" y1=\"" << y1 << "\" x2=\"" << x2 << "\" y2=\"" << y2 << "\" stroke=\"" << colour
        << "\"/>\n";
  }

  void axes(std::ostream& out) const {
    for (const double value : y_.ticks()) {
      rule(out, left, y_(value), width - right, y_(value), "#dddddd");
      label(out, left - 6, y_(value) + 4, text(value), "end");
    }
    if (panel_.categories.empty()) {
      for (const double value : x_.ticks()) x_tick(out, value, text(value));
    } else {
      for (std::size_t i = 0; i < panel_.categories.size(); ++i)
        x_tick(out, static_cast<double>(i), panel_.categories[i]);
    }
    rule(out, left, height - bottom, width - right, height - bottom, "#555555");
    rule(out, left, top, left, height - bottom, "#555555");
    label(out, (left + width - right) / 2, height - 10, panel_.x_label, "middle");
    const std::string turned = text("transform=\"rotate(-90 14 ", height / 2, ")\"");
    label(out, 14, height / 2, panel_.y_label, "middle", turned.c_str());
  }
  void x_tick(std::ostream& out, double value, const std::string& name) const {
    rule(out, x_(value), height - bottom, x_(value), height - bottom + 4, "#555555");
    label(out, x_(value), height - bottom + 17, name, "middle");
  }

  void mark(std::ostream& out) const {
    rule(out, x_(*panel_.mark), top, x_(*panel_.mark), height - bottom, "#777777");
    label(out, x_(*panel_.mark) - 5, height - bottom - 6, panel_.mark_label, "end");
  }

  void line(std::ostream& out, const PlotSeries& series, const char* colour) const {
    bool open = false;
    for (std::size_t i = 0; i <= series.x.size(); ++i) {
      const bool here = i < series.x.size() && shows(series, i);
      if (here && !open) out << "<polyline fill=\"none\" stroke=\"" << colour << "\" stroke-width=\"1.5\" points=\"";
      if (here) out << x_(series.x[i]) << ',' << y_(series.y[i]) << ' ';
      if (!here && open) out << "\"/>\n";
      open = here;
    }
  }
  void dots(std::ostream& out, const PlotSeries& series, const char* colour) const {
    for (std::size_t i = 0; i < series.x.size(); ++i)
      if (shows(series, i))
        out << "<circle r=\"4\" fill=\"" << colour << "\" fill-opacity=\"0.7\" cx=\"" << x_(series.x[i]) << "\" cy=\""
            << y_(series.y[i]) << "\"><title>" << series.x[i] << ", " << series.y[i] << "</title></circle>\n";
  }

  void legend(std::ostream& out) const {
    double y = top + 8;
    std::size_t named = 0;
    for (std::size_t i = 0; i < panel_.series.size() && named < most_in_legend; ++i) {
      if (panel_.series[i].name.empty()) continue;
      rule(out, width - right - 22, y, width - right - 6, y, colours[i % colours.size()]);
      label(out, width - right - 28, y + 4, panel_.series[i].name, "end");
      y += 15;
      ++named;
    }
  }

  const PlotPanel& panel_;
  Axis x_, y_;
};

}  // namespace

std::string to_svg(const std::vector<PlotPanel>& panels) {
  const HostFloats floats;
  const std::size_t across = std::clamp<std::size_t>(panels.size(), 1, panels_a_row);
  const std::size_t down = std::max<std::size_t>((panels.size() + across - 1) / across, 1);
  const double whole_width = width * static_cast<double>(across), whole_height = height * static_cast<double>(down);
  TextStream out;
  out << "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" << whole_width << "\" height=\"" << whole_height
      << "\" viewBox=\"0 0 " << whole_width << ' ' << whole_height
      << "\" font-family=\"sans-serif\" font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n";
  for (std::size_t i = 0; i < panels.size(); ++i) {
    out << "<g transform=\"translate(" << width * static_cast<double>(i % across) << ' '
        << height * static_cast<double>(i / across) << ")\">\n";
    Panel(panels[i]).write(out);
    out << "</g>\n";
  }
  out << "</svg>\n";
  return std::move(out).str();
}

void save_svg(const std::filesystem::path& file, const std::vector<PlotPanel>& panels) {
  require(file.extension() == ".svg", "save_svg: pictures are written as .svg; got ", file.string());
  const std::string picture = to_svg(panels);
  AtomicFile out(file);
  out.write(picture);
  out.commit();
}

}  // namespace gradus
