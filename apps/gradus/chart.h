/// Charts of a training, as SVG.
#pragma once
#include <string>
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

std::string svg_of(const Chart& chart);
/// The curves of a metrics.jsonl: loss and metrics of training and test, learning rate, seconds. What is no line of
/// numbers is passed over.
std::vector<Chart> charts_of(const std::string& metrics);

}  // namespace gradus::command
