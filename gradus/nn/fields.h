/// The walk over the fields of a user's struct that finds its layers and variables, with their names.
#pragma once
#include <algorithm>
#include <map>
#include <set>
#include "gradus/base/error.h"
#include "gradus/function/whereabouts.h"
#include "gradus/nn/field_kinds.h"
#include "gradus/nn/structure.h"
#include "gradus/text/saved_text.h"

namespace gradus {

namespace detail::inline rooms {

/// Receives the fields in their order. An object that several pointers lead to is visited once, under the name of the
/// first. A name is that of the field: "first", "layers_0" within an array or a container, "heads_left" within a map of
/// texts, "block/first" within a struct. Within a class whose field names cannot be seen it is "block/dense",
/// "block/dense_1".
struct FieldVisitor {
  /// Receives a layer.
  std::function<void(const std::string& name, const Module& layer)> layer = [](const std::string&, const Module&) {};
  /// Receives a Variable.
  std::function<void(const std::string& name, const Variable& variable)> variable = [](const std::string&,
                                                                                       const Variable&) {};
  /// Receives a plain field (bool, integer, floating number or enum) as text.
  std::function<void(const std::string& name, std::string value)> plain = [](const std::string&, std::string) {};
  /// Receives a field that is not walked: tensors, texts, functions, and the other contents of classes without a list
  /// of their layers.
  std::function<void(const std::string& name)> other = [](const std::string&) {};
  /// Receives state that is saved as text, such as a vocabulary.
  std::function<void(const std::string& name, const SavedText& text)> text = {};  // by default as `other`
  /// Receives a layer behind a raw pointer, which belongs to another object.
  std::function<void(const std::string& name, const Module& layer)> borrowed = {};  // by default as `layer`
};

}  // namespace detail::inline rooms

namespace detail {

/// Names by kind: dense, dense_1, dense_2.
class KindNames {
 public:
  std::string next(const Module& layer);
  std::string next(const Variable& variable);

 private:
  std::string numbered(const std::string& kind);
  std::map<std::string, int> seen_;
};

/// The name of a field in a walk.
struct FieldName {
  static constexpr bool is_kept = true;
  std::string path;
  FieldName within(std::string_view inner) const {
    return {path.empty() ? std::string(inner) : path + "/" + std::string(inner)};
  }
  FieldName element(std::string_view which) const { return {path + "_" + std::string(which)}; }
  FieldName element(std::size_t i) const { return {path + "_" + std::to_string(i)}; }
};
/// A name for walks that need none.
struct NoFieldName {
  static constexpr bool is_kept = false;
  NoFieldName within(std::string_view) const { return {}; }
  NoFieldName element(std::string_view) const { return {}; }
  NoFieldName element(std::size_t) const { return {}; }
};

template <class T> std::string spelt(const T& value) {
  if constexpr (std::same_as<T, bool>) {
    return value ? "true" : "false";
  } else if constexpr (std::is_enum_v<T>) {
    return std::to_string(static_cast<std::int64_t>(value));
  } else {
    TextStream spelt;
    spelt.precision(17);
    spelt << +value;
    return std::move(spelt).str();
  }
}

/// A walk's visitor that calls a FieldVisitor.
struct Naming {
  using Name = FieldName;
  const FieldVisitor& visitor;
  void layer(const FieldName& name, const Module& layer, bool is_borrowed) const {
    if (is_borrowed && visitor.borrowed) visitor.borrowed(name.path, layer);
    else visitor.layer(name.path, layer);
  }
  void variable(const FieldName& name, const Variable& variable) const { visitor.variable(name.path, variable); }
  template <class T> void plain(const FieldName& name, const T& value) const { visitor.plain(name.path, spelt(value)); }
  void state(const FieldName& name, std::string value) const { visitor.plain(name.path, std::move(value)); }
  void text(const FieldName& name, const SavedText& text) const {
    if (visitor.text) visitor.text(name.path, text);
    else visitor.other(name.path);
  }
  void other(const FieldName& name) const { visitor.other(name.path); }
  bool sees_hidden() const { return true; }
  void enter_hidden() const {}
  void leave_hidden() const {}
};
/// A walk's visitor that adds to a Structure.
struct Counting {
  using Name = NoFieldName;
  Structure& structure;
  void layer(NoFieldName, const Module& layer, bool) const { structure.add(layer); }
  void variable(NoFieldName, const Variable& variable) const { structure.add(variable); }
  template <class T> void plain(NoFieldName, const T&) const {}
  void state(NoFieldName, const std::string&) const {}
  void text(NoFieldName, const SavedText&) const {}
  void other(NoFieldName) const {}
  bool sees_hidden() const { return structure.sees_hidden(); }
  void enter_hidden() const { structure.enter_hidden(); }
  void leave_hidden() const { structure.leave_hidden(); }
};

/// One walk. Objects behind pointers are entered once, so that circles end.
template <class Visitor> class FieldWalk {
 public:
  using Name = typename Visitor::Name;
  explicit FieldWalk(const Visitor& visitor) : visitor_(visitor) {}

  template <class T> void visit_all(const T& object) {
    root_ = {&object, &key_of<T>};
    visit(Name(), object);
  }

  template <class T> void visit(const Name& name, const T& field) {
    if constexpr (std::derived_from<T, Module>) visit_module(name, field);
    else if constexpr (std::same_as<T, Variable>) visitor_.variable(name, field);
    else if constexpr (std::derived_from<T, SavedText>) visitor_.text(name, field);
    else if constexpr (is_plain<T>) visitor_.plain(name, field);
    else if constexpr (is_opaque_data<T>) visitor_.other(name);
    else if constexpr (std::is_pointer_v<T>) visit_borrowed(name, field);
    else if constexpr (is_a<T, std::reference_wrapper>) visit_borrowed(name, &field.get());
    else if constexpr (SmartPointer<T>) visit_pointee(name, field.get());
    else if constexpr (is_a<T, NamedLayer>) visit(name.within(field.name), *field.layer);
    else if constexpr (is_a<T, std::optional>) {
      if (field) visit(name, *field);
      else visitor_.state(name, "none");
    } else if constexpr (is_a<T, std::variant>) visit_variant(name, field);
    else if constexpr (is_pair<T>) {
      visit(name.within("first"), field.first);
      visit(name.within("second"), field.second);
    } else if constexpr (is_a<T, std::tuple>) visit_tuple(name, field);
    else if constexpr (Declared<T>) visit_declared(name, field);
    else if constexpr (Keyed<T>) visit_map(name, field);
    else if constexpr (Range<T>) visit_range(name, field);
    else if constexpr (reflect::is_reflected<T>)
      reflect::for_each_field(field,
                              [&](std::string_view inner, const auto& each) { visit(name.within(inner), each); });
    else if constexpr (sizeof(T) < sizeof(Variable)) visitor_.other(name);
    else visit_unopened(name, &field, sizeof field);
  }

 private:
  /// Visits layers and Variables within these bytes, except `known`.
  void visit_unopened(const Name& name, const void* begin, std::size_t bytes, const void* known = nullptr) {
    visitor_.other(name);
    if (!visitor_.sees_hidden()) return;
    visitor_.enter_hidden();
    KindNames kinds;
    const auto named = [&](const auto& one) {
      if constexpr (Name::is_kept) return name.within(kinds.next(one));
      else return name;
    };
    for (const whereabouts::Found& each : whereabouts::within(begin, bytes)) {
      if (each.at == known) continue;
      if (each.kind == whereabouts::Kind::module) {
        const auto& layer = *static_cast<const Module*>(each.at);
        visitor_.layer(named(layer), layer, borrows_);
      } else {
        const auto& variable = *static_cast<const Variable*>(each.at);
        visitor_.variable(named(variable), variable);
      }
    }
    visitor_.leave_hidden();
  }

  /// A class that adds fields to a layer may hold more layers.
  template <class T> void visit_module(const Name& name, const T& layer) {
    visitor_.layer(name, layer, borrows_);
    if constexpr (Declared<T>) visit_declared(name, layer);
    else if constexpr (sizeof(T) > sizeof(Module))
      visit_unopened(name, &layer, sizeof layer, static_cast<const Module*>(&layer));
  }

  template <class T> void visit_pointee(const Name& name, const T* at) {
    using Pointee = std::remove_cv_t<T>;
    if constexpr (may_hold_layers<Pointee>()) {
      if (!at) visitor_.state(name, "none");
      else if (root_ != Place(at, &key_of<Pointee>) && reached_.insert({at, &key_of<Pointee>, borrows_}).second)
        visit<Pointee>(name, *at);
    } else {
      visitor_.other(name);
    }
  }
  template <class T> void visit_borrowed(const Name& name, const T* at) {
    const bool declared = std::exchange(declares_, false);  // objects that a class lists belong to it
    const bool before = std::exchange(borrows_, borrows_ || !declared);
    visit_pointee(name, at);
    borrows_ = before, declares_ = declared;
  }

  template <class... A> void visit_variant(const Name& name, const std::variant<A...>& field) {
    if (field.valueless_by_exception()) return visitor_.state(name, "none");
    if constexpr (Name::is_kept) visitor_.state(name, "alternative " + std::to_string(field.index()));
    std::visit([&](const auto& value) { visit(name, value); }, field);
  }

  template <class... A> void visit_tuple(const Name& name, const std::tuple<A...>& field) {
    std::apply([&, i = std::size_t{0}](const auto&... each) mutable { (visit(name.element(i++), each), ...); }, field);
  }

  /// Layers without a name are called by their kinds, containers by their places.
  template <class T> void visit_declared(const Name& name, const T& object) {
    using Named = std::remove_cvref_t<decltype(declared_layers(object))>;
    decltype(auto) named = declared_layers(object);
    const bool before = std::exchange(declares_, true);
    KindNames kinds;
    if constexpr (!Name::is_kept && is_a<Named, std::tuple>) {
      std::apply([&](const auto&... each) { (visit(name, each), ...); }, named);
    } else if constexpr (is_a<Named, std::tuple>) {
      std::apply(
          [&, i = 0](const auto&... each) mutable {
            const auto visit_one = [&]<class Each>(const Each& one) {
              if constexpr (is_layer<Each>) visit(name.within(kinds.next(one)), one);
              else if constexpr (is_a<Each, NamedLayer>) visit(name, one);
              else visit(name.within(std::to_string(i)), one);
              ++i;
            };
            (visit_one(each), ...);
          },
          named);
    } else if constexpr (is_layer<Named> && Name::is_kept) {
      visit(name.within(kinds.next(named)), named);
    } else {
      visit(name, named);
    }
    declares_ = before;
  }

  /// Elements of vectors and arrays are always walked, those of other containers if they may hold layers.
  template <class T> void visit_range(const Name& name, const T& range) {
    using Value = std::ranges::range_value_t<const T>;
    if constexpr ((is_list<T> && Name::is_kept) || may_hold_layers<Value>()) {
      std::size_t i = 0;
      for (const auto& each : range) visit<Value>(name.element(i++), each);
    } else {
      visitor_.other(name);
    }
  }
  /// In the order of the keys, whatever the order of the container.
  template <class T> void visit_map(const Name& name, const T& map) {
    using Key = typename T::key_type;
    if constexpr (!may_hold_layers<typename T::mapped_type>()) {
      visitor_.other(name);
    } else if constexpr (!Name::is_kept) {
      for (const auto& [key, value] : map) visit(name, value);
    } else {
      struct Entry {
        const Key* key;
        const typename T::mapped_type* value;
        std::size_t place;
      };
      std::vector<Entry> in_order;
      for (const auto& [key, value] : map) in_order.push_back({&key, &value, in_order.size()});
      if constexpr (std::totally_ordered<Key>)  // clang warns of std::stable_sort in users' files
        std::ranges::sort(in_order, [](const Entry& a, const Entry& b) {
          return *a.key < *b.key || (!(*b.key < *a.key) && a.place < b.place);
        });
      std::map<std::string, int> seen;
      for (const auto& [key, value, place] : in_order) {
        std::string spelt_key = "key";
        if constexpr (is_plain<Key>) spelt_key = spelt(*key);
        else if constexpr (std::convertible_to<Key, std::string_view>) spelt_key = std::string_view(*key);
        if (const int before = seen[spelt_key]++) spelt_key += "_" + std::to_string(before);
        visit(name.element(spelt_key), *value);
      }
    }
  }

  template <class T> static constexpr char key_of = 0;
  using Place = std::pair<const void*, const void*>;  // address of an object, and a key for its type
  const Visitor& visitor_;
  Place root_;
  std::set<std::tuple<const void*, const void*, bool>> reached_;  // by pointers: address, type, borrowed
  bool borrows_ = false, declares_ = false;  // within an object behind a raw pointer; within the result of layers()
};

}  // namespace detail

namespace detail::inline rooms {

/// Visits the fields of `object`, of any class.
template <class T> void visit_fields(const T& object, const FieldVisitor& visitor) {
  const detail::Naming naming{visitor};
  detail::FieldWalk(naming).visit_all(object);
}
/// Adds the fields of `object` to a Structure.
template <class T> void add_fields_to(Structure& structure, const T& object) {
  const detail::Counting counting{structure};
  detail::FieldWalk(counting).visit_all(object);
}

}  // namespace detail::inline rooms

}  // namespace gradus
