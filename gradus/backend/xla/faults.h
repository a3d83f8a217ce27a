/// Faults of data on a device that no thread waits for. The programs of a device hand a state from one to the next;
/// StableHloModule defines its content. A program that finds one set changes nothing. It is read when a value of the
/// device is read, and then it is thrown and begins again.
#pragma once
#include <array>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>
#include "gradus/backend/xla/pjrt.h"
#include "gradus/backend/xla/stablehlo.h"

namespace gradus::xla {

class Faults {
 public:
  Faults(const pjrt::Session& session, pjrt::Device* device) : session_(session), device_(device) {}
  Faults(const Faults&) = delete;

  /// A run of a program with a state: others of the device wait. The state goes in as the last argument.
  class Run {
   public:
    Run(Faults& faults, const std::shared_ptr<const StableHloModule>& module);
    pjrt::Buffer* before() const { return faults_.state_->get(); }
    /// The run was started; its last result.
    void after(std::shared_ptr<pjrt::BufferOwner> state);
    /// By which failure_of() knows its results.
    std::int64_t number() const { return number_; }

   private:
    Faults& faults_;
    const std::lock_guard<std::mutex> lock_;
    const std::int64_t number_;
    const bool has_checks_;
  };
  /// A run of a program on several devices, which hands a failure on one of them to all. From then on observing one
  /// observes all of them.
  class Runs {
   public:
    Runs(std::span<Faults* const> faults, const std::shared_ptr<const StableHloModule>& module);
    Run& operator[](std::size_t device) { return *by_device_[device]; }

   private:
    std::deque<Run> runs_;  // in the order in which they lock
    std::vector<Run*> by_device_;
  };

  /// Throws each failure once; waits for the runs until now if they may still fail.
  void observe();
  /// The device has failed, and its report on data is lost, too: the state begins again.
  void forget();
  /// The state begins to come to the host, so that it arrives together with the value that is read next.
  void begin_to_observe();
  /// The failure that makes results of run `number` worthless; null: none was observed.
  std::exception_ptr failure_of(std::int64_t number);

 private:
  static constexpr std::size_t most_kept = 64;
  struct Failed {
    std::int64_t first, last;  // runs
    std::exception_ptr problem;
  };
  /// A state on its way to the host.
  struct Reading {
    explicit Reading(std::shared_ptr<pjrt::BufferOwner> state);
    ~Reading();
    Reading(const Reading&) = delete;
    const std::shared_ptr<pjrt::BufferOwner> of;
    std::array<std::int64_t, fault_words> words{};
    pjrt::EventOwner event;
  };
  std::exception_ptr problem_of(const std::array<std::int64_t, fault_words>& words) const;
  /// With this one, by address: the order in which they are locked.
  std::vector<Faults*> linked();
  /// `all` are locked, and stay so.
  static void link(const std::vector<Faults*>& all);
  void begin_to_read();
  std::exception_ptr observed();
  void begin_anew();

  const pjrt::Session& session_;
  pjrt::Device* const device_;
  std::mutex guard_;  // guards the members below
  std::shared_ptr<pjrt::BufferOwner> state_;
  std::int64_t runs_ = 0, first_ = 0;  // so far; before the state began again
  bool may_be_set_ = false;
  std::shared_ptr<Reading> reading_;                                        // of state_, or of one before it
  std::map<std::int64_t, std::shared_ptr<const StableHloModule>> checked_;  // that ran since then, by fingerprint
  std::vector<Failed> failed_;
  std::vector<Faults*> linked_;  // guarded by the links' own mutex; empty: none
};

}  // namespace gradus::xla
