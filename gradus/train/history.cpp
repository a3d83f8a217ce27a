/// Looking up metrics.
#include "gradus/train/history.h"
#include "gradus/base/error.h"
#include "gradus/base/nearest.h"
#include "gradus/train/history_record.h"

namespace gradus {
namespace {

using NameList = std::vector<std::string>;

template <class Value>
const Value* find_number(const std::vector<std::pair<std::string, Value>>& metrics, std::string_view name) {
  for (const auto& [metric, value] : metrics)
    if (metric == name) return &value;
  return nullptr;
}

template <class Value> NameList known_names(NameList known, const std::vector<std::pair<std::string, Value>>& metrics) {
  for (const auto& [metric, value] : metrics) known.push_back(metric);
  return known;
}

[[noreturn]] void fail_unknown(std::string_view name, const NameList& known) {
  throw InvalidArgument(text("there is no metric `", name, "`", did_you_mean(name, known)));
}

}  // namespace

const std::vector<double>& History::operator[](std::string_view metric) const {
  for (const std::string& name : {std::string(metric), long_name(metric)}) {
    if (const auto* found = find_number(metrics, name)) return *found;
    if (name == "loss") return loss;
    if (name == "seconds") return seconds;
    if (name == "validation_loss" && !validation_loss.empty()) return validation_loss;
  }
  NameList known{"loss"};
  if (!validation_loss.empty()) known.push_back("validation_loss");
  fail_unknown(metric, known_names(std::move(known), metrics));
}

double Evaluation::operator[](std::string_view metric) const {
  if (const double* found = find_number(metrics, metric)) return *found;
  if (metric == "loss") return loss;
  fail_unknown(metric, known_names({"loss"}, metrics));
}

}  // namespace gradus
