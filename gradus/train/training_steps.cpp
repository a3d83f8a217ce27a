/// Logs: names that are found, and used once.
#include "gradus/train/training_steps.h"
#include <algorithm>

namespace gradus {

Logs::Logs(std::initializer_list<Entry> entries) {
  for (const Entry& each : entries) add(each);
}

void Logs::add(Entry entry) {
  require(!entry.name.empty(), "Logs: a number without a name");
  require(entry.value.defined(), "Logs: `", entry.name, "` is an empty Loss");
  require(!find(entry.name), "Logs: two numbers are called `", entry.name, "`; give one of them another name");
  require(entries_.size() < most_logs, "Logs: more than ", most_logs, " numbers");
  entries_.push_back(std::move(entry));
}

void Logs::compute_metrics(const Tensor& y, const Tensor& prediction, const Tensor& sample_weight) {
  for_metrics_.push_back({y, prediction, sample_weight});
}

const std::function<Logs(In fields)>& BatchStep::call(std::string_view what, std::size_t fields) const {
  require(!call_ || fields == fields_, "TrainingSteps: the ", what, " step takes ", fields_,
          " fields of a batch, the data set has ", fields);
  return call_;
}

const Loss* Logs::find(std::string_view name) const {
  const auto found = std::ranges::find(entries_, name, &Entry::name);
  return found == entries_.end() ? nullptr : &found->value;
}

}  // namespace gradus
