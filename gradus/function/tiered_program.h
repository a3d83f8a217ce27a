/// TieredProgram: a program in two tiers that give the same bits. The first run of a small one is interpreted, so that
/// a first result does not wait for code generation; the second run compiles.
#pragma once
#include <mutex>
#include "gradus/backend/backend.h"

namespace gradus {

/// While it lives, programs that its thread makes are compiled once their runs have taken as long as that takes, not at
/// the second run: for functions that may be called a few times only.
class PatientTiers {
 public:
  PatientTiers();
  ~PatientTiers();
  PatientTiers(const PatientTiers&) = delete;

 private:
  const bool outer_;
};

class TieredProgram {
 public:
  /// `options.symbols`: of the first run.
  TieredProgram(Graph graph, CompileOptions options);

  /// The program for one run.
  std::shared_ptr<const Executable> next();
  /// The compiled one; compiles it if need be.
  const Executable& compiled();
  /// Seconds of compiling since it was made.
  double later_seconds() const { return later_seconds_.load(std::memory_order_relaxed); }
  /// The bytes that it takes in a cache now.
  std::size_t footprint() const;

 private:
  void compile_now();
  void compile_later();
  std::atomic<const Executable*> ready_{nullptr};  // owned by compiled_
  std::atomic<double> later_seconds_{0};
  mutable std::mutex guard_;  // guards the members below
  std::shared_ptr<const Executable> compiled_, interpreted_;
  int patience_ = 1;  // runs that are still interpreted
  Graph graph_;       // until it is compiled
  CompileOptions options_;
};

}  // namespace gradus
