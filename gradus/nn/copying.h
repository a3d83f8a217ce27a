/// Copying of models: a layer that occurs twice in a model occurs twice in the copy.
#pragma once
#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace gradus {

namespace detail::inline rooms {
class Layer;
}  // namespace detail::inline rooms
class Module;

namespace detail::inline rooms {

/// The copying of a module on this thread, or the copying around it.
class Copying {
 public:
  Copying();
  ~Copying();
  Copying(const Copying&) = delete;

  /// True while a module is copied on this thread.
  static bool is_active() { return outermost_ != nullptr; }
  /// True if it is part of copying a model.
  bool is_inner() const { return outermost_ != this; }
  /// The copy of `layer` for `to`, which is a copy of the handle `from`. A layer is copied once for all handles to it.
  /// If the same handle is copied again, that is another copy.
  std::shared_ptr<Layer> copy_of(const std::shared_ptr<Layer>& layer, const Module& from, const Module& to);
  /// The handle that `from` was copied to; null if it was not copied.
  static const Module* copied_to(const Module* from);

  /// Copies of objects that pointers own, by the address of the object and a key for its type.
  using Objects = std::map<std::pair<const void*, const void*>, std::shared_ptr<void>>;
  /// Those of the outermost copying.
  static Objects& objects() { return outermost_->objects_; }

 private:
  static thread_local Copying* outermost_;
  struct Copied {
    std::shared_ptr<Layer> layer;
    std::vector<const Module*> handles;  // handles that were copied
  };
  std::map<std::shared_ptr<Layer>, Copied> layers_;  // kept alive, so that their addresses are not used again
  std::map<const Module*, const Module*> handles_;
  Objects objects_;
};

}  // namespace detail::inline rooms

}  // namespace gradus
