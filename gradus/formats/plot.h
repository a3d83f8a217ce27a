/// Plots as SVG, which every browser shows: panels of lines or dots over axes that may be logarithmic.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace gradus {

/// A line, or dots. Points that are not finite, or not positive on a logarithmic axis, are left out; a line has a gap
/// there.
struct PlotSeries {
  std::string name;          // empty: not in the legend
  std::vector<double> x, y;  // coordinates, as many x as y
  bool dots = false;         // dots instead of a line
};
/// A panel with its axes.
struct PlotPanel {
  std::string title, x_label, y_label;       // texts over the panel and beside its axes
  bool log_x = false, log_y = false;         // logarithmic axes
  std::vector<std::string> categories = {};  // labels of x = 0, 1, 2 ...; empty: numbers
  std::vector<PlotSeries> series = {};       // drawn one over the other
  std::optional<double> mark = {};           // x of a vertical line
  std::string mark_label = {};               // text beside that line
};

/// One picture, with the panels side by side in rows of at most three. InvalidArgument unless each series has as many x
/// as y.
std::string to_svg(const std::vector<PlotPanel>& panels);
/// Writes such a picture to a file, which appears whole or not at all. InvalidArgument for a name that does not end in
/// .svg, Unavailable if it cannot be written.
void save_svg(const std::filesystem::path& file, const std::vector<PlotPanel>& panels);

}  // namespace gradus
