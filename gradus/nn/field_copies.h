/// Copying and moving of a struct of layers. Objects that it owns by shared pointers are copied with it, and pointers
/// into it point into the copy.
#pragma once
#include <functional>
#include <set>
#include <typeinfo>
#include "gradus/base/error.h"
#include "gradus/nn/array_copies.h"
#include "gradus/nn/copying.h"
#include "gradus/nn/field_kinds.h"
#include "gradus/nn/fields.h"

namespace gradus::detail {

/// InvalidArgument if the copy of a struct of this type still uses layers or Variables of the original.
void check_apart(const char* type, const std::function<void(const FieldVisitor&)>& visit_original,
                 const std::function<void(const FieldVisitor&)>& visit_copy);

class FieldCopies {
 public:
  /// Call this after `to` was copied or moved from `from`.
  template <class Net> static void after_copy(const Net& from, Net& to) {
    FieldCopies all;
    all.ranges_.push_back({&from, sizeof(Net), &to});
    all.visit(to);
    all.follow(to);
  }
  template <class Net> static void after_move(const Net& from, Net& to) {
    FieldCopies all;
    all.ranges_.push_back({&from, sizeof(Net), &to});
    all.follow(to);
  }

 private:
  template <class Net> void follow(Net& to) {
    follows_ = true;
    reached_.clear();
    visit(to);
  }

  template <class T> void visit(T& field) {
    if constexpr (std::is_const_v<T>) check_const(field);
    else if constexpr (is_opaque_data<T> || std::same_as<T, Variable>) return;
    else if constexpr (std::derived_from<T, Module>) {
      if constexpr (Declared<T>) visit_declared(field);
    } else if constexpr (std::is_pointer_v<T>) move_pointer(field);
    else if constexpr (is_a<T, std::reference_wrapper>) {
      auto* at = &field.get();
      move_pointer(at);
      field = *at;
    } else if constexpr (SmartPointer<T>) visit_owner(field);
    else if constexpr (is_a<T, std::optional>) {
      if (field) visit(*field);
    } else if constexpr (is_a<T, std::variant>) {
      if (!field.valueless_by_exception()) std::visit([&](auto& value) { visit(value); }, field);
    } else if constexpr (is_pair<T> || is_a<T, std::tuple>)
      std::apply([&](auto&... each) { (visit(each), ...); }, field);
    else if constexpr (Declared<T>) visit_declared(field);
    else if constexpr (Keyed<T>) {
      if constexpr (may_hold_layers<typename T::mapped_type>())
        for (auto&& [key, value] : field) visit(value);
    } else if constexpr (Range<T>) visit_range(field);
    else if constexpr (reflect::is_reflected<T>)
      std::apply([&](auto&... each) { (visit(each), ...); }, reflect::tie(field));
  }

  /// A const field cannot be replaced, so it must not share layers.
  template <class T> void check_const(T& field) const {
    if constexpr (is_a<std::remove_const_t<T>, std::shared_ptr> && may_hold_layers<std::remove_const_t<T>>())
      if (!follows_ && field) fail_copy(typeid(T).name());
  }

  template <class T> void visit_range(T& range) {
    using Each = std::remove_reference_t<std::ranges::range_reference_t<T>>;
    if constexpr (may_hold_layers<std::remove_const_t<Each>>()) {
      for (auto& each : range) visit(each);
    }
  }

  /// The result of a const function is not const: it is part of the struct.
  template <class T> void visit_declared(const T& object) {
    decltype(auto) named = declared_layers(object);
    using Named = std::remove_cvref_t<decltype(named)>;
    if constexpr (is_a<Named, std::tuple>) std::apply([&](auto&... each) { (visit_named(each), ...); }, named);
    else if constexpr (std::is_reference_v<decltype(object.layers())>) visit(const_cast<Named&>(named));
  }
  template <class T> void visit_named(T& one) {
    if constexpr (is_a<std::remove_const_t<T>, NamedLayer>) visit_named(*one.layer);
    else visit(const_cast<std::remove_const_t<T>&>(one));
  }

  template <class Owner> void visit_owner(Owner& owner) {
    using Pointee = typename Owner::element_type;
    if constexpr (may_hold_layers<std::remove_const_t<Pointee>>()) {
      if (!owner) return;
      if constexpr (is_a<Owner, std::shared_ptr>)
        if (!follows_) owner = copy_of(owner);
      if (reached_.insert(owner.get()).second) visit(const_cast<std::remove_const_t<Pointee>&>(*owner));
    }
  }
  template <class T> std::shared_ptr<T> copy_of(const std::shared_ptr<T>& owner) {
    std::shared_ptr<void>& known = Copying::objects()[{owner.get(), &key_of<T>}];
    if (!known) {
      const std::shared_ptr<T> copy = new_copy(*owner);
      known = std::const_pointer_cast<std::remove_const_t<T>>(copy);
      if constexpr (!std::is_polymorphic_v<T>) ranges_.push_back({owner.get(), sizeof(T), copy.get()});
    }
    return std::static_pointer_cast<T>(known);
  }
  template <class T> static std::shared_ptr<T> new_copy(const T& from) {
    using Plain = std::remove_const_t<T>;
    if constexpr (requires {
                    { from.clone() } -> std::convertible_to<std::shared_ptr<T>>;
                  }) {
      return from.clone();
    } else if constexpr (!std::is_abstract_v<T> && is_copyable<Plain>()) {
      if (typeid(from) == typeid(Plain)) return std::make_shared<Plain>(made_of(from));
    }
    fail_copy(typeid(from).name());
  }

  /// Redirects a pointer into the struct that was copied or moved, or into an object copied with it.
  template <class T> void move_pointer(T*& pointer) {
    if constexpr (std::is_object_v<T> && may_hold_layers<std::remove_const_t<T>>()) {
      if (!follows_ || !pointer) return;
      if constexpr (std::derived_from<T, Module>)
        if (const Module* copy = Copying::is_active() ? Copying::copied_to(pointer) : nullptr) {
          pointer = static_cast<T*>(const_cast<Module*>(copy));
          return;
        }
      pointer = static_cast<T*>(const_cast<void*>(moved(pointer)));
    }
  }
  const void* moved(const void* at) const;

  struct Moved {
    const void* from;
    std::size_t bytes;
    const void* to;
  };
  template <class T> static constexpr char key_of = 0;
  std::vector<Moved> ranges_;
  std::set<const void*> reached_;  // objects reached by owning pointers
  bool follows_ = false;           // in the second pass: for pointers that own nothing
};

/// `net` is the struct of a model or a cell.
template <class NetLayer> std::shared_ptr<NetLayer> copied_net(const NetLayer& layer) {
  using Net = std::remove_cvref_t<decltype(layer.net)>;
  if constexpr (is_copyable<Net>()) {
    const Copying copying;
    auto copy = std::make_shared<NetLayer>(layer);
    FieldCopies::after_copy(layer.net, copy->net);
    check_apart(
        typeid(Net).name(), [&](const FieldVisitor& visitor) { visit_fields(layer.net, visitor); },
        [&](const FieldVisitor& visitor) { visit_fields(copy->net, visitor); });
    return copy;
  } else {
    fail_copy(typeid(Net).name());
  }
}

}  // namespace gradus::detail
