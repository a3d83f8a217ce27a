/// Copying: while a model is copied, what is there twice within is there twice in the copy.
#pragma once
#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace gradus {

class Layer;
class Module;

/// The copying of a module on this thread, or the one around it.
class Copying {
 public:
  Copying();
  ~Copying();
  Copying(const Copying&) = delete;

  static bool is_active() { return outermost_ != nullptr; }
  /// Whether it is part of copying a model.
  bool is_inner() const { return outermost_ != this; }
  /// For `to`, a copy of the handle `from`. The layer is copied once for all handles to it; the same handle, copied
  /// again, is another copy.
  std::shared_ptr<Layer> copy_of(const std::shared_ptr<Layer>& layer, const Module& from, const Module& to);
  /// The handle that `from` was copied to; null: it was not.
  static const Module* copied_to(const Module* from);

  /// Copies of objects that pointers own: by the address of the object, and that which stands for its type.
  using Objects = std::map<std::pair<const void*, const void*>, std::shared_ptr<void>>;
  static Objects& objects() { return outermost_->objects_; }

 private:
  static thread_local Copying* outermost_;
  struct Copied {
    std::shared_ptr<Layer> layer;
    std::vector<const Module*> handles;  // that were copied
  };
  std::map<std::shared_ptr<Layer>, Copied> layers_;  // kept: what dies in the meantime leaves its address to others
  std::map<const Module*, const Module*> handles_;
  Objects objects_;
};

}  // namespace gradus
