/// WatchedState: C++ state that is part of a call's signature although no argument holds it. It consists of the layers
/// that a trace met and their setup, the plain fields of models, and flags that say if Variables and layers are
/// trained. A trace notes the state that it looked at; its program holds as long as that is unchanged.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace gradus {

namespace detail::inline rooms {

/// How often setups and flags have changed in this process: as long as that is the same number, none has.
std::uint64_t changes_of_setups();
void note_change_of_setup();

/// The state of a C++ object, such as a layer, as traces see it: if it is trained, and a number that changes with each
/// change of the object and never comes back. A copy of the object is another object.
class Setup {
 public:
  struct Record {
    std::atomic<std::uint64_t> number;  // 0: the object was destroyed
    std::atomic<bool> trainable;
    std::atomic<const char*> last_change{""};
  };
  Setup();
  Setup(const Setup& other);
  Setup& operator=(const Setup&) = delete;
  ~Setup() { change_to(0, "was destroyed"); }

  std::uint64_t number() const { return record_->number.load(std::memory_order_relaxed); }
  /// `how` lives for ever: "was assigned".
  void change(const char* how);
  bool trainable() const { return record_->trainable.load(std::memory_order_relaxed); }
  void set_trainable(bool trainable);
  const std::shared_ptr<Record>& record() const { return record_; }

 private:
  void change_to(std::uint64_t number, const char* how);
  std::shared_ptr<Record> record_;
};

/// A setup that was met.
struct WatchedSetup {
  std::shared_ptr<const Setup::Record> record;
  std::uint64_t seen;
  std::string name;  // "layer dense"

  bool has_changed() const { return record->number.load(std::memory_order_acquire) != seen; }
  std::string difference() const;
};

/// A flag that was asked for.
struct WatchedFlag {
  std::weak_ptr<const std::atomic<bool>> flag;
  bool seen;
  std::string name;  // "variable dense/kernel"

  bool has_changed() const;
  std::string difference() const;
};

/// The fields of an object: plain ones, and which layers are in it.
struct WatchedFields {
  struct Field {
    std::string name, value;  // spelt; of a layer empty
    std::uint64_t setup = 0;  // of a layer
    bool operator==(const Field&) const = default;
  };
  using Fields = std::vector<Field>;
  std::shared_ptr<const Setup::Record> object;
  std::string owner;            // "model net"
  Fields seen;                  // while tracing
  std::function<Fields()> now;  // called as long as the object lives

  bool is_gone() const { return object->number.load(std::memory_order_acquire) == 0; }
  bool has_changed() const { return is_gone() || now() != seen; }
  /// "field `deep` of model net was false, now true"; empty if nothing has changed.
  std::string difference() const;
};

/// All that a trace looked at.
class WatchedState {
 public:
  void add(WatchedSetup setup);
  void add(WatchedFlag flag);
  void add(WatchedFields fields);
  void add(const WatchedState& more);
  bool has_fields_of(const Setup& object) const;
  /// The state at the end of the trace, without objects that the trace made itself and does not depend on: dead ones
  /// are dropped, and setups that have changed count with their present number.
  WatchedState at_end() const;

  /// True if all state is as it was seen. `known`: the number changes_of_setups() at which setups and flags were last
  /// so; it is brought up to date.
  bool holds(std::atomic<std::uint64_t>& known) const;
  /// True if the state can never be again as it was seen.
  bool is_over() const;
  /// Empty if nothing has changed.
  std::string difference() const;

 private:
  bool setups_and_flags_hold() const;
  std::vector<WatchedFields> fields_;
  std::vector<WatchedSetup> setups_;
  std::vector<WatchedFlag> flags_;
};

}  // namespace detail::inline rooms

}  // namespace gradus
