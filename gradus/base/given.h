/// Given: marks option structs that are an option of another struct, as .checkpoints = {.directory = d}. In a
/// std::optional they would need further braces, and an error in them would not name the field; so they know themselves
/// whether they are given.
#pragma once

namespace gradus::detail {

/// The last field of such option structs, which users never set.
struct Given {
  bool value = true;
  bool operator==(const Given&) const = default;
};

/// Options of type T that the user has not given.
template <class T> T not_given() {
  T none{};
  none.given.value = false;
  return none;
}

/// True unless the user has not given these options. Options of which a field was set later count as given.
template <class T> bool is_given(const T& options) { return options != not_given<T>(); }

}  // namespace gradus::detail
