/// Matching, generalizing and explaining signatures.
#include "gradus/function/signature.h"
#include "gradus/base/rooms.h"
#include <map>

namespace gradus {

bool detail::is_same_kind(const Signature& a, const Signature& b) {
  if (a.statics != b.statics || a.mode != b.mode || a.scope != b.scope || a.specs.size() != b.specs.size())
    return false;
  for (std::size_t i = 0; i < a.specs.size(); ++i) {
    const Spec &x = a.specs[i], &y = b.specs[i];
    if (x.dtype != y.dtype || x.shape.rank() != y.shape.rank() || x.device != y.device) return false;
  }
  return true;
}

namespace {

std::string_view name_of(CallMode mode) {
  return mode == CallMode::training ? "training" : mode == CallMode::inference ? "inference" : "unsaid";
}

}  // namespace

std::optional<std::vector<std::int64_t>> detail::match(const Signature& pattern, const Signature& call) {
  if (!is_same_kind(pattern, call)) return {};
  std::vector<std::int64_t> symbols;
  for (std::size_t i = 0; i < call.specs.size(); ++i) {
    const Shape &wanted = pattern.specs[i].shape, &given = call.specs[i].shape;
    for (int axis = 0; axis < given.rank(); ++axis) {
      if (wanted[axis] >= 0) {
        if (wanted[axis] != given[axis]) return {};
        continue;
      }
      // Patterns hold plain symbols, numbered in the order in which they appear.
      const auto k = static_cast<std::size_t>(dimension::symbols_in(wanted[axis]) - 1);
      if (k == symbols.size()) symbols.push_back(given[axis]);
      else if (symbols[k] != given[axis]) return {};
    }
  }
  return symbols;
}

namespace {

/// True if this dimension was declared as any_size; that of a mask, if its argument's was.
bool is_open(const std::vector<Spec>& declared, const Signature& call, std::size_t i, int axis) {
  if (declared.empty()) return false;
  if (i < declared.size()) return declared[i].shape[axis] == any_size;
  const std::size_t of = call.statics.masked[i - declared.size()];
  const Shape& shape = declared[of].shape;
  return axis < shape.rank() && shape[axis] == any_size && call.specs[i].shape[axis] == call.specs[of].shape[axis];
}

}  // namespace

Signature detail::generalize(const std::vector<Signature>& earlier, const Signature& call,
                             const std::vector<Spec>& declared) {
  std::vector<const Signature*> family;
  for (const Signature& before : earlier)
    if (is_same_kind(before, call)) family.push_back(&before);
  Signature pattern = call;
  std::map<std::vector<std::int64_t>, std::int64_t> symbols;  // by the extents in all calls
  for (std::size_t i = 0; i < call.specs.size(); ++i)
    for (int axis = 0; axis < call.specs[i].shape.rank(); ++axis) {
      const std::int64_t now = call.specs[i].shape[axis];
      std::vector<std::int64_t> extents{now};
      bool varies = is_open(declared, call, i, axis);
      for (const Signature* before : family) {
        extents.push_back(before->specs[i].shape[axis]);
        varies = varies || extents.back() != now;
      }
      if (!varies) continue;
      const auto next = static_cast<int>(symbols.size());
      pattern.specs[i].shape.set(axis, symbols.try_emplace(extents, dimension::symbol(next)).first->second);
    }
  return pattern;
}

namespace {

/// Calls visit(argument, axis) wherever symbol `k` stands.
template <class Visit> void for_each_place(const Signature& pattern, int k, Visit visit) {
  for (std::size_t i = 0; i < pattern.specs.size(); ++i)
    for (int axis = 0; axis < pattern.specs[i].shape.rank(); ++axis)
      if (dimension::symbols_in(pattern.specs[i].shape[axis]) == k + 1) visit(i, axis);
}

}  // namespace

Signature detail::with_fixed(const Signature& pattern, int k, const Signature& call) {
  Signature fixed = pattern;
  for_each_place(pattern, k,
                 [&](std::size_t i, int axis) { fixed.specs[i].shape.set(axis, call.specs[i].shape[axis]); });
  const int symbols = static_cast<int>(match(pattern, call).value().size());
  for (int later = k + 1; later < symbols; ++later)
    for_each_place(pattern, later,
                   [&](std::size_t i, int axis) { fixed.specs[i].shape.set(axis, dimension::symbol(later - 1)); });
  return fixed;
}

std::string detail::places_of(const Signature& pattern, int k) {
  std::string places;
  for_each_place(pattern, k, [&](std::size_t i, int axis) {
    places += text(places.empty() ? "" : " and ", "argument ", i, ", dimension ", axis);
  });
  return places;
}

namespace {

/// "argument 0 and argument 2 had a mask"
std::string masks_text(const std::vector<std::size_t>& masked) {
  std::string names;
  for (const std::size_t i : masked) names += text(names.empty() ? "" : " and ", "argument ", i);
  return names.empty() ? "no argument had a mask" : names + " had a mask";
}

}  // namespace

std::string detail::difference(const Signature& before, const Signature& now) {
  const auto arguments = [](const Signature& s) { return s.specs.size() - s.statics.masked.size(); };
  if (arguments(before) != arguments(now))
    return text("there were ", arguments(before), " tensor arguments, now ", arguments(now));
  if (before.statics.types != now.statics.types) return "the arguments were of other types";
  if (before.statics.values != now.statics.values)
    return text("static arguments were ", before.statics.values, ", now ", now.statics.values);
  if (before.statics.masked != now.statics.masked)
    return text(masks_text(before.statics.masked), " before, ", masks_text(now.statics.masked), " now");
  if (before.mode != now.mode) return text("the training mode was ", name_of(before.mode), ", now ", name_of(now.mode));
  if (before.scope != now.scope)
    return text("it was called for ", before.scope.physical(), ", now for ", now.scope.physical());
  std::string reasons;
  for (std::size_t i = 0; i < now.specs.size(); ++i) {
    const Spec &a = before.specs[i], &b = now.specs[i];
    if (a == b && a.device == b.device) continue;
    if (!reasons.empty()) reasons += "; ";
    if (a.dtype != b.dtype || a.shape.rank() != b.shape.rank() || a.device != b.device) {
      reasons += text("argument ", i, " was ", a, ", now ", b);
      continue;
    }
    for (int axis = 0, found = 0; axis < b.shape.rank(); ++axis)
      if (a.shape[axis] != b.shape[axis])
        reasons += text(found++ ? ", " : text("argument ", i, ": "), "dimension ", axis, " was ", a.shape[axis],
                        ", now ", b.shape[axis]);
  }
  return reasons.empty() ? "sizes that agreed before do not agree now" : reasons;
}

void detail::check_declared(const std::string& name, const std::vector<Spec>& declared, const Signature& call) {
  const std::size_t arguments = call.specs.size() - call.statics.masked.size();
  require(declared.size() == arguments, name, ": its input signature has ", declared.size(), " tensors, the call ",
          arguments);
  for (std::size_t i = 0; i < declared.size(); ++i) {
    const Spec &wanted = declared[i], &given = call.specs[i];
    bool fits = wanted.dtype == given.dtype && wanted.shape.rank() == given.shape.rank();
    for (int axis = 0; fits && axis < given.shape.rank(); ++axis)
      fits = wanted.shape[axis] == any_size || wanted.shape[axis] == given.shape[axis];
    require(fits, name, ": argument ", i, " is ", given, ", which does not fit its input signature ", wanted);
  }
}

void detail::check_declared_devices(const std::string& name, const std::vector<Spec>& declared, const Signature& call) {
  for (std::size_t i = 0; i < declared.size(); ++i) {
    const Spec &wanted = declared[i], &given = call.specs[i];
    if (!wanted.device.is_named()) continue;
    const Device there = (given.device.is_named() ? given.device : call.scope).physical();
    require(there == wanted.device.device(), name, ": argument ", i, " is on ", there, ", its input signature ", wanted,
            " says ", wanted.device.device(), ". Move it: .to(", wanted.device.device(), ')');
  }
}

}  // namespace gradus
