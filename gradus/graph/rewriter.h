/// GraphRewriter: makes one graph of another, value by value. Every pass that adds, drops or moves values uses it.
#pragma once
#include <optional>
#include "gradus/graph/per_value.h"

namespace gradus {

/// Makes a graph `to` of a graph `from`, and knows which value of `to` stands for each value of `from`. These are
/// visited in their order, so operands come first.
class GraphRewriter {
 public:
  GraphRewriter(const Graph& from, Graph& to) : from_(from), to_(to), places_(from, -1) {}

  /// The value of `to` that stands for value i; -1: none yet.
  int operator[](int i) const { return places_[i]; }
  /// From now on `value` stands for i.
  int set(int i, int value) { return places_[i] = value; }
  /// Value i, its operands those of `to`.
  Value renamed(int i) const {
    Value v = from_[i];
    rename(v.in);
    return v;
  }
  void rename(std::vector<int>& values) const {
    for (int& value : values) value = (*this)[value];
  }
  /// Appends `v`, which stands for i.
  int replace(int i, Value v) { return set(i, to_.add(std::move(v))); }
  /// Appends value i.
  int keep(int i) { return replace(i, renamed(i)); }
  /// Gives `to` the inputs, outputs and dying inputs of `from`.
  void finish() {
    to_.inputs = from_.inputs, to_.outputs = from_.outputs, to_.dying = from_.dying;
    for (std::vector<int>* list : {&to_.inputs, &to_.outputs, &to_.dying}) rename(*list);
  }

 private:
  const Graph& from_;
  Graph& to_;
  PerValue<int> places_;
};

/// Makes `to` of `from`. rewritten(v), for a value whose operands are those of `to`, gives the value of `to` that
/// stands for it, which it may add, or none: then v is added.
void rewrite_values(const Graph& from, Graph& to, const auto& rewritten) {
  GraphRewriter places(from, to);
  for (int i = 0; i < from.size(); ++i) {
    Value v = places.renamed(i);
    if (const std::optional<int> value = rewritten(v)) places.set(i, *value);
    else places.replace(i, std::move(v));
  }
  places.finish();
}

}  // namespace gradus
