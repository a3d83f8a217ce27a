/// Signatures: the keys by which calls find a compiled variant, and the reasons why a new one is needed.
#pragma once
#include <optional>
#include <string>
#include <vector>
#include "gradus/function/mode.h"
#include "gradus/tensor/shape.h"

namespace gradus {

namespace detail::inline rooms {

/// The parts of a call's arguments that are no tensors.
struct StaticArguments {
  std::string values;                    // spelt
  const void* types = nullptr;           // one address for each list of types, those of tensors among them
  std::vector<std::size_t> masked = {};  // the arguments with masks, which follow all arguments in this order
  bool operator==(const StaticArguments&) const = default;
};

/// The key of a call.
struct Signature {
  std::vector<Spec> specs;  // of a call: concrete; of a variant: some dimensions are symbols
  StaticArguments statics;
  CallMode mode = CallMode::unsaid;
  Placement scope = DeviceScope::current();  // the device that the caller computes on
};

/// True if they differ in sizes at most: dtypes, ranks and devices are the same.
bool is_same_kind(const Signature& a, const Signature& b);

/// The values of a pattern's symbols if `call` fits it; else nothing.
std::optional<std::vector<std::int64_t>> match(const Signature& pattern, const Signature& call);

/// The pattern for a call that nothing fits, given earlier calls that led to variants. A dimension that has varied
/// becomes a symbol; dimensions that have always agreed become one symbol. `declared` (may be empty) says which are
/// symbols from the start, as any_size. A mask has the declared sizes of its argument.
Signature generalize(const std::vector<Signature>& earlier, const Signature& call, const std::vector<Spec>& declared);

/// `pattern` with symbol `k` fixed as in `call`, which fits it.
Signature with_fixed(const Signature& pattern, int k, const Signature& call);

/// Where symbol `k` stands: "argument 0, dimension 0 and argument 1, dimension 0".
std::string places_of(const Signature& pattern, int k);

/// "argument 1: dimension 0 was 64, now 40"
std::string difference(const Signature& before, const Signature& now);

/// InvalidArgument unless the call fits the declared specs but for devices. Masks are not declared.
void check_declared(const std::string& name, const std::vector<Spec>& declared, const Signature& call);
/// InvalidArgument unless its tensors are on the devices that the declared specs name. One that names none fits any.
/// check_declared() comes first.
void check_declared_devices(const std::string& name, const std::vector<Spec>& declared, const Signature& call);

}  // namespace detail::inline rooms

}  // namespace gradus
