/// Lookup of the watched number.
#include "gradus/train/monitor.h"
#include <cmath>
#include "gradus/base/nearest.h"
#include "gradus/base/ranges.h"
#include "gradus/ops/constant.h"

namespace gradus {

Remembered::Remembered(std::string name, double value)
    : variable_(full({}, value, f64), std::move(name), {.trainable = false}) {}
void Remembered::operator=(double value) { variable_.assign(full({}, value, f64)); }

Monitor::Monitor(std::string callback, std::string monitor, MonitorMode mode, double min_delta)
    : callback_(std::move(callback)), monitor_(std::move(monitor)), mode_(mode), min_delta_(min_delta) {
  check_number(callback_, "min_delta", Allowed::not_negative("min_delta"), min_delta);
}

double Monitor::value(const EpochLog& log) const {
  if (monitor_.empty()) return log.validation_loss.value_or(log.loss);
  if (monitor_ == "loss") return log.loss;
  if (monitor_ == "validation_loss" && log.validation_loss) return *log.validation_loss;
  std::vector<std::string> known{"loss"};
  if (log.validation_loss) known.push_back("validation_loss");
  for (const auto& [name, number] : log.metrics) {
    if (name == monitor_) return number;
    known.push_back(name);
  }
  throw InvalidArgument(text(callback_, ": there is no `", monitor_, "` to watch", did_you_mean(monitor_, known)));
}

bool Monitor::more_is_better() const {
  if (mode_ != MonitorMode::automatic) return mode_ == MonitorMode::max;
  for (const char* word : {"accuracy", "precision", "recall", "auc"})
    if (monitor_.find(word) != std::string::npos) return true;
  return false;
}

bool Monitor::is_better(double now, double best) const {
  return more_is_better() ? now > best + min_delta_ : now < best - min_delta_;
}

double Monitor::worst() const {
  const double infinity = std::numeric_limits<double>::infinity();
  return more_is_better() ? -infinity : infinity;
}

}  // namespace gradus
