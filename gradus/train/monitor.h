/// What callbacks that watch a number have in common: which number, what is better, and memory that checkpoints keep.
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
  /// `callback` opens messages. InvalidArgument for a min_delta that is negative or no number.
  Monitor(std::string callback, std::string monitor, MonitorMode mode, double min_delta);

  /// InvalidArgument lists what there is if the number is not there.
  double value(const EpochLog& log) const;
  /// Whether `now` is better than `best` by more than min_delta; NaN is never better.
  bool is_better(double now, double best) const;
  /// What everything is better than.
  double worst() const;

 private:
  bool more_is_better() const;
  std::string callback_, monitor_;
  MonitorMode mode_;
  double min_delta_;
};

}  // namespace gradus
