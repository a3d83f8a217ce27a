/// The sums of the logs of a training step of the user's own over an epoch. Their names are found while the step is
/// traced, so the Variables have room for as many as there may be.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>
#include "gradus/function/variable.h"
#include "gradus/train/training_steps.h"

namespace gradus {

class LogTotals {
 public:
  LogTotals();
  void reset();
  /// Within a traced step: adds the logs, but for "loss", if `counts`, a boolean scalar, holds.
  void add(const Logs& logs, const Tensor& counts);
  /// Outside of the step: takes over the rows that a checkpoint names, and writes those of new names.
  void read_names();
  void keep_names();
  /// The means by name, in the order of the logs; NaN for those that count nothing. Waits.
  std::vector<std::pair<std::string, double>> numbers() const;
  /// The names of the logs, which are known after a step.
  std::vector<std::string> names() const;
  /// Sums, and marks of their names.
  Variables variables() const { return Variables{sums_, marks_}; }

 private:
  std::size_t row_of(const std::string& name);
  Variable sums_;                                          // f64 [most_logs, 2]: sum, weight
  Variable marks_;                                         // i64 [most_logs]: hashes of the names of rows; 0: none
  std::vector<std::int64_t> rows_;                         // marks, on the host
  std::vector<std::pair<std::string, std::size_t>> used_;  // names and their rows
  bool were_read_ = false;
  std::size_t kept_ = 0;  // number of rows that marks_ names
};

}  // namespace gradus
