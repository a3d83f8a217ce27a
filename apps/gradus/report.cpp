/// The page, part by part.
#include "apps/gradus/report.h"
#include <algorithm>
#include <iomanip>
#include <numeric>
#include "gradus/base/error.h"
#include "gradus/formats/svg.h"

namespace gradus::command {
namespace {

constexpr std::string_view style = R"(
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1180px; margin: 2rem auto; padding: 0 1rem; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(420px, 1fr)); gap: 1rem; }
figure { margin: 0; } figcaption { font-weight: 600; }
svg { width: 100%; height: auto; } svg text { font-size: 12px; fill: currentColor; }
.grid { stroke: currentColor; opacity: 0.15; } .cursor { stroke: currentColor; opacity: 0.5; }
table { border-collapse: collapse; } td { padding: 0.15rem 1.5rem 0.15rem 0; } td + td { font-variant-numeric: tabular-nums; }
.scroll { overflow-x: auto; }
.confusion td, .confusion th { padding: 0.2rem 0.5rem; text-align: right; font-weight: 400; }
.confusion th { opacity: 0.75; } .confusion .right { outline: 1px solid currentColor; outline-offset: -1px; }
.confusion td { background: color-mix(in srgb, #2563eb calc(var(--share) * 80%), transparent); }
.worst { display: grid; grid-template-columns: repeat(auto-fill, minmax(170px, 1fr)); gap: 1rem; }
.worst img { width: 112px; height: 112px; object-fit: contain; image-rendering: pixelated; display: block; }
.worst p { margin: 0.25rem 0; font-size: 13px; overflow-wrap: anywhere; }
pre { overflow-x: auto; padding: 0.75rem; border: 1px solid color-mix(in srgb, currentColor 20%, transparent); }
)";

// Nothing is drawn by it: a report without scripts is whole. It marks when it is ready, and errors.
constexpr std::string_view script = R"(
"use strict";
window.addEventListener("error", event => { document.documentElement.dataset.error = event.message; });
for (const chart of document.querySelectorAll("svg.chart")) {
  const circles = [...chart.querySelectorAll("circle")], cursor = chart.querySelector(".cursor");
  const reading = chart.querySelector(".reading");
  chart.addEventListener("pointermove", event => {
    const x = new DOMPoint(event.clientX, event.clientY).matrixTransform(chart.getScreenCTM().inverse()).x;
    const distance = circle => Math.abs(circle.cx.baseVal.value - x);
    if (circles.length === 0) return;
    const nearest = circles.reduce((a, b) => distance(b) < distance(a) ? b : a);
    const same = circles.filter(circle => circle.dataset.epoch === nearest.dataset.epoch);
    cursor.setAttribute("x1", nearest.cx.baseVal.value);
    cursor.setAttribute("x2", nearest.cx.baseVal.value);
    cursor.setAttribute("visibility", "visible");
    reading.textContent = `epoch ${Number(nearest.dataset.epoch) + 1}: ` +
      same.map(circle => `${circle.dataset.curve} ${circle.dataset.value}`).join(", ");
  });
  chart.addEventListener("pointerleave", () => {
    cursor.setAttribute("visibility", "hidden");
    reading.textContent = "";
  });
}
document.documentElement.dataset.ready = document.querySelectorAll("svg.chart polyline.curve").length;
)";

std::string base64(std::string_view bytes) {
  constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t left = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k)
      group = group << 8 | (k < left ? static_cast<unsigned char>(bytes[i + k]) : std::uint32_t{0});
    for (std::size_t k = 0; k < 4; ++k) out += k <= left ? digits[group >> (18 - 6 * k) & 63] : '=';
  }
  return out;
}

/// Rows are true classes, columns predicted ones; the colour is the share of the row.
void write_confusion(std::ostream& out, const Findings& findings) {
  const std::size_t n = findings.confusion.size();
  out << "<h2>Confusion</h2>\n<p>Rows: what the test examples are. Columns: what the model says.</p>\n"
         "<div class=\"scroll\"><table class=\"confusion\">\n<tr><th></th>";
  const auto name = [&](std::size_t i) {
    return svg::escaped(class_name(findings.classes, static_cast<std::int64_t>(i)));
  };
  for (std::size_t i = 0; i < n; ++i) out << "<th>" << name(i) << "</th>";
  out << "<th>found</th></tr>\n";
  for (std::size_t truth = 0; truth < n; ++truth) {
    const std::vector<std::int64_t>& row = findings.confusion[truth];
    const std::int64_t all = std::accumulate(row.begin(), row.end(), std::int64_t{0});
    const auto share = [&](std::size_t i) {
      return all > 0 ? static_cast<double>(row[i]) / static_cast<double>(all) : 0.0;
    };
    out << "<tr><th>" << name(truth) << "</th>";
    for (std::size_t i = 0; i < n; ++i)
      out << "<td" << (i == truth ? " class=\"right\"" : "") << " style=\"--share:" << share(i) << "\">" << row[i]
          << "</td>";
    out << "<td>" << (all > 0 ? text(100 * share(truth), " %") : "none") << "</td></tr>\n";
  }
  out << "</table></div>\n";
}

void write_worst(std::ostream& out, const Findings& findings) {
  out << "<h2>Worst examples</h2>\n<p>Of the test set, by their loss.</p>\n<div class=\"worst\">\n";
  for (const WorstExample& example : findings.worst) {
    out << "<div>";
    if (!example.png.empty())
      out << "<img alt=\"test example " << example.index << "\" src=\"data:image/png;base64," << base64(example.png)
          << "\">";
    out << "<p>is <b>" << svg::escaped(example.truth) << "</b>, predicted <b>" << svg::escaped(example.prediction)
        << "</b>";
    if (example.probability > 0) out << " (" << 100 * example.probability << " %)";
    out << "</p><p>loss " << example.loss << ", example " << example.index << "</p>";
    if (!example.features.empty()) out << "<p>" << svg::escaped(example.features) << "</p>";
    out << "</div>\n";
  }
  out << "</div>\n";
}

}  // namespace

std::string to_html(const Report& report) {
  TextStream out;
  out << std::setprecision(4);
  out << "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
         "content=\"width=device-width\">\n<title>"
      << svg::escaped(report.title) << "</title>\n<style>" << style << "</style>\n</head>\n<body>\n<h1>"
      << svg::escaped(report.title) << "</h1>\n<table>\n";
  for (const auto& [what, value] : report.facts)
    out << "<tr><td>" << svg::escaped(what) << "</td><td>" << svg::escaped(value) << "</td></tr>\n";
  out << "</table>\n<div class=\"charts\">\n";
  for (const Chart& chart : report.charts)
    out << "<figure>\n<figcaption>" << svg::escaped(chart.title) << "</figcaption>\n" << svg_of(chart) << "</figure>\n";
  out << "</div>\n";
  for (const auto& [title, picture] : report.pictures)
    out << "<h2>" << svg::escaped(title) << "</h2>\n<figure>\n" << picture << "</figure>\n";
  if (!report.profile.empty()) out << "<h2>Profile</h2>\n<pre>" << svg::escaped(report.profile) << "</pre>\n";
  if (!report.findings.confusion.empty()) write_confusion(out, report.findings);
  if (!report.findings.worst.empty()) write_worst(out, report.findings);
  out << "<h2>Model</h2>\n<pre>" << svg::escaped(report.summary) << "</pre>\n<h2>Configuration</h2>\n<pre>"
      << svg::escaped(report.configuration) << "</pre>\n<script>" << script << "</script>\n</body>\n</html>\n";
  return std::move(out).str();
}

}  // namespace gradus::command
