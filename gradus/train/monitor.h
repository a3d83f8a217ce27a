/// Parts that callbacks with a watched number share: the number, its direction, and memory that checkpoints keep.
#pragma once
#include <limits>
#include <optional>
#include <string>
#include "gradus/function/variable.h"
#include "gradus/train/callback.h"

namespace gradus {

/// One f64 that a callback remembers.
class Remembered {
 public:
  explicit Remembered(std::string name, double value = 0);
  operator double() const { return variable_.value().item(); }
  void operator=(double value);
  const Variable& variable() const { return variable_; }

 private:
  Variable variable_;
};

class Monitor {
 public:
  /// `callback` opens messages. InvalidArgument for a min_delta that is negative or NaN.
  Monitor(std::string callback, std::string monitor, MonitorMode mode, double min_delta);

  /// The callback and the watched number: "early_stopping of accuracy".
  std::string name() const { return monitor_.empty() ? callback_ : callback_ + " of " + monitor_; }
  /// The watched number; empty for one of the validation set in an epoch without a validation. InvalidArgument lists
  /// the existing ones if it does not exist.
  std::optional<double> value(const EpochLog& log) const;
  /// True if `now` is better than `best` by more than min_delta. NaN is never better.
  bool is_better(double now, double best) const;
  /// A number that everything is better than.
  double worst() const;

 private:
  bool more_is_better() const;
  std::string callback_, monitor_;
  MonitorMode mode_;
  double min_delta_;
};

}  // namespace gradus
