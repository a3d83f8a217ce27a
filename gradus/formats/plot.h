/// Pictures of numbers as SVG, which every browser shows: panels of lines or dots over axes that may be logarithmic.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace gradus {

/// Points that are not finite, or not positive on a logarithmic axis, are left out; a line has a gap there.
struct PlotSeries {
  std::string name;  // empty: not in the legend
  std::vector<double> x, y;
  bool dots = false;  // else a line
};
struct PlotPanel {
  std::string title, x_label, y_label;
  bool log_x = false, log_y = false;
  std::vector<std::string> categories = {};  // what x = 0, 1, 2 ... stand for; empty: numbers
  std::vector<PlotSeries> series = {};
  std::optional<double> mark = {};  // where a vertical line stands
  std::string mark_label = {};
};

/// One picture, the panels side by side in rows of at most three. InvalidArgument unless each series has as many x as
/// y.
std::string to_svg(const std::vector<PlotPanel>& panels);
/// Such a picture as a file, which appears whole or not at all. InvalidArgument for a name that does not end in .svg,
/// Unavailable if it cannot be written.
void save_svg(const std::filesystem::path& file, const std::vector<PlotPanel>& panels);

}  // namespace gradus
