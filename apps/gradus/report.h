/// The report of a run: one HTML file with inline SVG curves, readable without a network.
#pragma once
#include <string>
#include <utility>
#include <vector>

namespace gradus::command {

struct Curve {
  std::string name;
  std::vector<double> values;  // one an epoch; not finite: a gap
};
struct Chart {
  std::string title;
  std::vector<Curve> curves;
};
struct Report {
  std::string title;
  std::vector<std::pair<std::string, std::string>> facts;  // what and how much
  std::vector<Chart> charts;
  std::string summary, configuration;  // preformatted text
};

std::string to_html(const Report& report);

}  // namespace gradus::command
