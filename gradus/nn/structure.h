/// Structure: the result of a walk over a model as one number. Checking that it has not changed takes some nanoseconds
/// per layer; a walk with all names takes a microsecond.
#pragma once
#include <cstdint>
#include <vector>

namespace gradus {

namespace detail::inline rooms {
class Layer;
}  // namespace detail::inline rooms
class Module;
class Variable;

namespace detail::inline rooms {

/// A hash of all layers and variables of a model.
class Structure {
 public:
  /// Treatment of contents of classes that cannot be opened, which take longest to find. They change only with
  /// whereabouts::changes(), unless one is a model, which has fields that can change without a handle.
  enum class Hidden { seen, left_out };
  Structure(const Layer& root, Hidden hidden);
  /// The hash.
  std::uint64_t number() const { return number_; }
  /// True if a model lies in such a class; for a Structure that has seen hidden contents.
  bool has_hidden_models() const { return has_hidden_models_; }

  // For layers that list their contents.
  /// Adds a layer and its contents.
  void add(const Layer& layer);
  /// Adds the layer behind a module, or that the module is empty.
  void add(const Module& module);
  /// Adds a Variable.
  void add(const Variable& variable);
  /// Declares that `layer` has fields of a user's struct.
  void note_model() { has_hidden_models_ = has_hidden_models_ || depth_of_hidden_ > 0; }
  /// True if hidden contents are counted.
  bool sees_hidden() const { return hidden_ == Hidden::seen; }
  /// Begins the contents of a class that cannot be opened.
  void enter_hidden() { ++depth_of_hidden_; }
  /// Ends them.
  void leave_hidden() { --depth_of_hidden_; }

 private:
  void mix(std::uint64_t part);
  const Hidden hidden_;
  std::uint64_t number_ = 0;
  int depth_of_hidden_ = 0;
  bool has_hidden_models_ = false;
  std::vector<const Layer*> path_;  // from the root to the present layer: the walk ends where it meets itself
};

}  // namespace detail::inline rooms

}  // namespace gradus
