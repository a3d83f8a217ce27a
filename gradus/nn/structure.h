/// Structure: what a walk over a model would find, as one number. Finding that it has not changed takes some
/// nanoseconds a layer, a walk with all names a microsecond.
#pragma once
#include <cstdint>
#include <vector>

namespace gradus {

class Layer;
class Module;
class Variable;

class Structure {
 public:
  /// What lies in the bytes of classes that cannot be opened takes longest to find. It changes only with
  /// whereabouts::changes(), unless it is a model, which has fields that can change without a handle.
  enum class Hidden { seen, left_out };
  Structure(const Layer& root, Hidden hidden);
  std::uint64_t number() const { return number_; }
  /// Whether a model lies in such a class; of a Structure that has seen what is hidden.
  bool has_hidden_models() const { return has_hidden_models_; }

  // For layers that say what is within.
  void add(const Layer& layer);
  /// The layer behind; an empty module counts as such.
  void add(const Module& module);
  void add(const Variable& variable);
  /// `layer` has fields of a user's struct.
  void note_model() { has_hidden_models_ = has_hidden_models_ || depth_of_hidden_ > 0; }
  bool sees_hidden() const { return hidden_ == Hidden::seen; }
  void enter_hidden() { ++depth_of_hidden_; }
  void leave_hidden() { --depth_of_hidden_; }

 private:
  void mix(std::uint64_t part);
  const Hidden hidden_;
  std::uint64_t number_ = 0;
  int depth_of_hidden_ = 0;
  bool has_hidden_models_ = false;
  std::vector<const Layer*> path_;  // down to where the walk is: it ends where it meets itself
};

}  // namespace gradus
