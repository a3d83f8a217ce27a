/// Numbers by name, epoch by epoch.
#include "gradus/train/history_record.h"
#include <algorithm>
#include <limits>
#include <utility>

namespace gradus {
namespace {

constexpr std::string_view validation_prefix = "validation_";

using Series = std::pair<std::string, std::vector<double>>;

std::vector<double> unknown_epochs(std::size_t epochs) {
  return std::vector<double>(epochs, std::numeric_limits<double>::quiet_NaN());
}

auto find_series(std::vector<Series>& all, const std::string& name) {
  return std::ranges::find(all, name, &Series::first);
}

/// The validation losses and metrics of a program that does not validate in every epoch are as many as there were.
bool has_all_epochs(const std::vector<double>& series, std::size_t epochs, bool has_every_epoch) {
  return has_every_epoch ? series.size() == epochs : series.size() <= epochs;
}

}  // namespace

void add_epoch(History& history, const EpochNumbers& epoch) {
  const std::size_t before = history.loss.size();
  history.loss.push_back(epoch.loss);
  history.seconds.push_back(epoch.seconds);
  if (epoch.validation_loss) history.validation_loss.push_back(*epoch.validation_loss);
  for (const auto& [name, number] : epoch.numbers) {
    auto found = find_series(history.metrics, name);
    if (found == history.metrics.end()) {
      history.metrics.emplace_back(name, unknown_epochs(name.starts_with(validation_prefix) ? 0 : before));
      found = history.metrics.end() - 1;
    }
    found->second.push_back(number);
  }
}

History completed_history(History recorded, const RecordedNames& names) {
  const std::size_t epochs = recorded.loss.size();
  recorded.seconds.assign(epochs, 0);  // seconds belong to the current call only
  const auto of_validation = [&](std::vector<double> series) {
    if (has_all_epochs(series, epochs, names.validates_every_epoch)) return series;
    return unknown_epochs(names.validates_every_epoch ? epochs : 0);
  };
  if (names.validation.empty()) recorded.validation_loss.clear();
  else recorded.validation_loss = of_validation(std::move(recorded.validation_loss));
  auto before = std::exchange(recorded.metrics, {});
  for (const std::string& name : names.training) {
    const auto found = find_series(before, name);
    const bool is_known = found != before.end() && found->second.size() == epochs;
    recorded.metrics.emplace_back(name, is_known ? found->second : unknown_epochs(epochs));
  }
  for (const std::string& name : names.validation) {
    if (name == "validation_loss") continue;
    const auto found = find_series(before, name);
    recorded.metrics.emplace_back(name, of_validation(found == before.end() ? std::vector<double>() : found->second));
  }
  if (names.keeps_others)
    for (const Series& each : before)
      if (find_series(recorded.metrics, each.first) == recorded.metrics.end()) recorded.metrics.push_back(each);
  return recorded;
}

std::string long_name(std::string_view name) {
  constexpr std::string_view keras = "val_";
  if (!name.starts_with(keras)) return std::string(name);
  return std::string(validation_prefix) + std::string(name.substr(keras.size()));
}

}  // namespace gradus
