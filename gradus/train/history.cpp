/// Looking up metrics.
#include "gradus/train/history.h"
#include "gradus/base/error.h"
#include "gradus/base/nearest.h"

namespace gradus {
namespace {

template <class Value>
const Value& find(const std::vector<std::pair<std::string, Value>>& metrics, std::string_view name) {
  std::vector<std::string> known;
  for (const auto& [metric, value] : metrics) {
    if (metric == name) return value;
    known.push_back(metric);
  }
  throw InvalidArgument(text("there is no metric `", name, "`",
                             known.empty() ? "; none was given in the options" : did_you_mean(name, known)));
}

}  // namespace

const std::vector<double>& History::operator[](std::string_view metric) const { return find(metrics, metric); }
double Evaluation::operator[](std::string_view metric) const { return find(metrics, metric); }

}  // namespace gradus
