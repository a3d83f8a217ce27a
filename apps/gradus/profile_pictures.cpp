/// Rectangles with titles.
#include "apps/gradus/profile_pictures.h"
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <iomanip>
#include <map>
#include <optional>
#include <vector>
#include "apps/gradus/decimals.h"
#include "gradus/base/error.h"
#include "gradus/base/hash.h"
#include "gradus/base/rooms.h"
#include "gradus/formats/svg.h"
#include "gradus/profile/timeline.h"

namespace gradus::command {
namespace {

using Kind = ActivityEvent::Kind;

constexpr double picture_width = 1120, picture_left = 150, picture_right = 8;
constexpr double plot = picture_width - picture_left - picture_right;
constexpr std::size_t most_slices = 600;  // of a timeline

std::string time_text(double seconds) {
  if (seconds >= 1) return fixed(seconds, 3) + " s";
  if (seconds >= 1e-3) return fixed(seconds * 1e3, 3) + " ms";
  return fixed(seconds * 1e6, 1) + " us";
}
std::string bytes_text(double bytes) {
  if (bytes >= 1 << 20) return fixed(bytes / (1 << 20), 2) + " MiB";
  return fixed(bytes / 1024, 1) + " KiB";
}

std::string opened(double height, std::string_view name) {
  return text("<svg class=\"profile\" role=\"img\" aria-label=\"", name, "\" viewBox=\"0 0 ", picture_width, ' ',
              fixed(height, 0), "\">\n");
}
void put_text(std::ostream& out, double x, double y, std::string_view text, std::string_view anchor = "start") {
  out << "<text x=\"" << fixed(x, 1) << "\" y=\"" << fixed(y, 1) << "\" text-anchor=\"" << anchor << "\">"
      << svg::escaped(text) << "</text>\n";
}
void put_box(std::ostream& out, double x, double y, double w, double h, std::string_view color,
             std::string_view title) {
  out << "<rect x=\"" << fixed(x, 2) << "\" y=\"" << fixed(y, 1) << "\" width=\"" << fixed(std::max(w, 0.4), 2)
      << "\" height=\"" << fixed(h, 1) << "\" fill=\"" << color << "\"><title>" << svg::escaped(title)
      << "</title></rect>\n";
}
/// The part of a name that fits into a box of this width, in letters of about 6.6 units.
std::string cut(const std::string& name, double w) {
  const auto letters = static_cast<std::size_t>(std::max(0.0, (w - 6) / 6.6));
  if (name.size() <= letters) return name;
  return letters < 4 ? "" : name.substr(0, letters - 2) + "..";
}
/// The same name has the same color everywhere.
std::string color_of(std::string_view name, int lightness = 62) {
  return text("hsl(", hash_of(name) % 360, " 62% ", lightness, "%)");
}

/// Ticks of time below a picture.
void put_axis(std::ostream& out, double y, double seconds, const std::function<double(double)>& x_of, double begin) {
  const double step = svg::round_step(std::max(seconds, 1e-9) / 8);
  for (double t = std::ceil(begin / step) * step; t <= begin + seconds; t += step) {
    out << "<line class=\"grid\" x1=\"" << fixed(x_of(t), 1) << "\" x2=\"" << fixed(x_of(t), 1) << "\" y1=\"0\" y2=\""
        << fixed(y, 1) << "\"/>\n";
    put_text(out, x_of(t), y + 14, time_text(t), "middle");
  }
}

struct Slice {
  int row;
  double begin, end;  // seconds since the work began
  std::string name, title, color;
};

/// Slices of all tracks. Compiling and communication have rows of their own.
class Slices {
 public:
  explicit Slices(const ProfileTimeline& timeline) : rows{"scopes", "input"}, timeline_(timeline) {
    for (const ProfileTimeline::Track& track : timeline.tracks) rows.push_back(track.name);
    rows.insert(rows.end(), {"compiling", "communication"});
    for (std::size_t t = 0; t < timeline.tracks.size(); ++t)
      for (const ActivityEvent& event : timeline.tracks[t].kept.events) {
        if (const auto row = row_of(event, t)) add(*row, event);
      }
    std::ranges::stable_sort(all, {}, &Slice::begin);
    if (all.size() > most_slices) all.erase(all.begin(), all.end() - most_slices);
    leave_out_empty_rows();
  }
  std::vector<Slice> all;
  std::vector<std::string> rows;

 private:
  std::optional<std::size_t> row_of(const ActivityEvent& event, std::size_t track) const {
    const bool is_profiled = track == 0;
    switch (event.kind) {
      case Kind::scope: return 0;
      case Kind::kernel:
      case Kind::making: return 2 + track;
      case Kind::fetch: return is_profiled ? std::optional<std::size_t>(1) : std::nullopt;
      case Kind::compile: return is_profiled ? rows.size() - 2 : 2 + track;
      case Kind::communication: return is_profiled ? rows.size() - 1 : 2 + track;
      default: return {};
    }
  }
  void leave_out_empty_rows() {
    std::vector<int> places(rows.size(), -1);
    std::vector<std::string> kept;
    for (const Slice& slice : all) places[static_cast<std::size_t>(slice.row)] = 0;
    for (std::size_t r = 0; r < rows.size(); ++r)
      if (places[r] == 0) places[r] = static_cast<int>(kept.size()), kept.push_back(rows[r]);
    for (Slice& slice : all) slice.row = places[static_cast<std::size_t>(slice.row)];
    rows = std::move(kept);
  }
  void add(std::size_t row, const ActivityEvent& event) {
    const std::string name = timeline_.label(event);
    const double begin = seconds(event.begin - timeline_.begin), end = seconds(event.end - timeline_.begin);
    std::string title = text(name, ": ", time_text(end - begin), " from ", time_text(begin));
    std::string color = color_of(name);
    if (event.kind == Kind::kernel) {
      const ProfiledKernel& kernel = timeline_.kernel(event);
      if (!kernel.layer.empty()) title += text(", ", kernel.layer, kernel.is_gradient ? " (gradient)" : "");
      color = color_of(kernel.layer.empty() ? name : kernel.layer, kernel.is_gradient ? 45 : 65);
    }
    if (event.kind == Kind::fetch) color = "#dc2626";
    all.push_back({static_cast<int>(row), begin, end, name, std::move(title), std::move(color)});
  }
  static double seconds(std::int64_t nanoseconds) { return static_cast<double>(nanoseconds) * 1e-9; }
  const ProfileTimeline& timeline_;
};

struct Layer {
  double seconds = 0, gradient = 0, bytes = 0, flops = 0;
  std::map<std::string, Layer> within;
};

void put_layer(std::ostream& out, const std::string& name, const std::string& path, const Layer& layer, double x,
               double scale, int depth, double all) {
  constexpr double height = 22;
  const double w = layer.seconds * scale, y = depth * height;
  put_box(out, x, y, w, height - 2, depth == 0 ? "#94a3b8" : color_of(name),
          text(path.empty() ? "all kernels" : path, ": ", time_text(layer.seconds), ", ",
               fixed(100 * layer.seconds / all, 1), " %; gradient ", time_text(layer.gradient), "; ",
               bytes_text(layer.bytes), ", ", fixed(layer.flops / 1e6, 1), " MFLOP"));
  if (const std::string shown = cut(name, w); !shown.empty()) put_text(out, x + 4, y + 14, shown);
  std::vector<std::pair<std::string, const Layer*>> inner;
  for (const auto& [each, part] : layer.within) inner.emplace_back(each, &part);
  std::ranges::stable_sort(inner, std::greater<>(), [](const auto& part) { return part.second->seconds; });
  for (const auto& [each, part] : inner) {
    put_layer(out, each, path.empty() ? each : path + "/" + each, *part, x, scale, depth + 1, all);
    x += part->seconds * scale;
  }
}

int depth_of(const Layer& layer) {
  int deepest = 0;
  for (const auto& [name, part] : layer.within) deepest = std::max(deepest, 1 + depth_of(part));
  return deepest;
}

}  // namespace

std::string timeline_svg(const ProfileReport& report) {
  if (!report.timeline) return {};
  const Slices slices(*report.timeline);
  if (slices.all.empty()) return {};
  const double begin = slices.all.front().begin;
  double end = begin;
  for (const Slice& slice : slices.all) end = std::max(end, slice.end);
  const auto x_of = [&](double t) { return picture_left + (t - begin) / std::max(end - begin, 1e-9) * plot; };
  constexpr double row_height = 24;
  const double height = static_cast<double>(slices.rows.size()) * row_height;
  TextStream out;
  out << opened(height + 22, "timeline");
  put_axis(out, height, end - begin, x_of, begin);
  for (std::size_t r = 0; r < slices.rows.size(); ++r)
    put_text(out, picture_left - 6, static_cast<double>(r) * row_height + 15, cut(slices.rows[r], picture_left), "end");
  for (const Slice& slice : slices.all) {
    const double x = x_of(slice.begin), w = x_of(slice.end) - x, y = slice.row * row_height + 2;
    put_box(out, x, y, w, row_height - 4, slice.color, slice.title);
    if (const std::string shown = cut(slice.name, w); w > 60 && !shown.empty()) put_text(out, x + 3, y + 14, shown);
  }
  out << "</svg>\n";
  return std::move(out).str();
}

std::string flame_svg(const ProfileReport& report) {
  Layer root;
  double of_kernels = 0;
  for (const ProfileRow& row : report.rows) {
    if (row.kind == ProfileKind::kernel) of_kernels += row.seconds;
    if (row.kind != ProfileKind::layer) continue;
    std::vector<Layer*> way{&root};
    for (std::size_t from = 0; from <= row.name.size();) {
      const std::size_t to = std::min(row.name.find('/', from), row.name.size());
      way.push_back(&way.back()->within[row.name.substr(from, to - from)]);
      from = to + 1;
    }
    for (Layer* layer : way) {
      layer->seconds += row.seconds;
      layer->gradient += row.gradient_seconds;
      layer->bytes += static_cast<double>(row.bytes);
      layer->flops += row.flops;
    }
  }
  if (of_kernels <= 0) return {};
  root.seconds = of_kernels;  // those of no layer, too
  TextStream out;
  out << opened(22.0 * (1 + depth_of(root)), "layers");
  put_layer(out, "all kernels", "", root, 4, (picture_width - 8) / of_kernels, 0, of_kernels);
  out << "</svg>\n";
  return std::move(out).str();
}

std::string memory_svg(const ProfileReport& report) {
  if (report.memory.empty()) return {};
  constexpr double height = 220;
  constexpr std::size_t most_samples = 400;
  using Part = std::size_t ProfileMemory::*;
  static constexpr std::array<std::tuple<Part, const char*, const char*>, 6> parts{
      {{&ProfileMemory::weights, "weights", "#2563eb"},
       {&ProfileMemory::optimizer, "optimizer", "#7c3aed"},
       {&ProfileMemory::data, "data", "#dc2626"},
       {&ProfileMemory::others, "others", "#94a3b8"},
       {&ProfileMemory::activations, "activations", "#16a34a"},
       {&ProfileMemory::temporaries, "temporaries", "#f59e0b"}}};
  std::vector<ProfileMemory> samples;
  const std::size_t step = (report.memory.size() + most_samples - 1) / most_samples;
  for (std::size_t i = 0; i < report.memory.size(); i += step) samples.push_back(report.memory[i]);
  const auto sum_of = [](const ProfileMemory& at) {
    double sum = 0;
    for (const auto& [part, name, color] : parts) sum += static_cast<double>(at.*part);
    return sum;
  };
  double most = 1;
  for (const ProfileMemory& at : samples) most = std::max(most, sum_of(at));
  TextStream out;
  out << opened(height + 44, "memory");
  const double each = plot / static_cast<double>(samples.size());
  std::vector<double> below(samples.size(), 0);
  for (const auto& [part, name, color] : parts) {
    std::string top, bottom;
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const double from = below[i];
      below[i] += static_cast<double>(samples[i].*part);
      for (const double x :
           {picture_left + static_cast<double>(i) * each, picture_left + static_cast<double>(i + 1) * each})
        top += text(fixed(x, 1), ',', fixed(height - below[i] / most * height, 1), ' ');
      for (const double x :
           {picture_left + static_cast<double>(i) * each, picture_left + static_cast<double>(i + 1) * each})
        bottom = text(fixed(x, 1), ',', fixed(height - from / most * height, 1), ' ') + bottom;
    }
    out << "<polygon fill=\"" << color << "\" points=\"" << top << bottom << "\"/>\n";
  }
  for (std::size_t i = 0; i < samples.size(); ++i) {
    std::string title = text("after ", time_text(samples[i].seconds), ": ", bytes_text(sum_of(samples[i])));
    for (const auto& [part, name, color] : parts)
      title += text(", ", name, ' ', bytes_text(static_cast<double>(samples[i].*part)));
    put_box(out, picture_left + static_cast<double>(i) * each, 0, each, height, "transparent", title);
  }
  for (int i = 0; i <= 4; ++i)
    put_text(out, picture_left - 6, height - height * i / 4 + (i == 4 ? 12 : 0), bytes_text(most * i / 4), "end");
  double x = picture_left;
  for (const auto& [part, name, color] : parts) {
    put_box(out, x, height + 14, 12, 12, color, name);
    put_text(out, x + 16, height + 24, name);
    x += 120;
  }
  out << "</svg>\n";
  return std::move(out).str();
}

std::string parts_svg(const ProfileReport& report) {
  if (report.seconds <= 0) return {};
  const std::array<std::tuple<double, const char*, const char*>, 5> parts{
      {{report.compute, "compute", "#16a34a"},
       {report.input_wait, "input wait", "#dc2626"},
       {report.compile, "compile", "#7c3aed"},
       {report.communication, "communication", "#f59e0b"},
       {report.host, "host", "#94a3b8"}}};
  TextStream out;
  out << opened(30, "parts of the time");
  double x = 4;
  for (const auto& [seconds, name, color] : parts) {
    const double w = seconds / report.seconds * (picture_width - 8);
    if (seconds <= 0) continue;
    const std::string share = text(name, ' ', fixed(100 * seconds / report.seconds, 1), " %");
    put_box(out, x, 2, w, 24, color, text(share, ", ", time_text(seconds)));
    if (const std::string shown = cut(share, w); !shown.empty()) put_text(out, x + 4, 18, shown);
    x += w;
  }
  out << "</svg>\n";
  return std::move(out).str();
}

}  // namespace gradus::command
