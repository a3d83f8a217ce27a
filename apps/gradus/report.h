/// The report of a run: one HTML file with its curves, a confusion matrix and the worst examples. It needs no network;
/// its script only shows numbers under the pointer.
#pragma once
#include <string>
#include <utility>
#include <vector>
#include "apps/gradus/chart.h"
#include "apps/gradus/findings.h"

namespace gradus::command {

struct Report {
  std::string title;
  std::vector<std::pair<std::string, std::string>> facts;  // name and value
  std::vector<Chart> charts;
  std::vector<std::pair<std::string, std::string>> pictures = {};  // titles and SVG, one below the other
  Findings findings = {};
  std::string profile = {};            // a table, preformatted
  std::string summary, configuration;  // preformatted text
};

std::string to_html(const Report& report);

}  // namespace gradus::command
