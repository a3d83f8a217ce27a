/// Given: options that are an option of others, as .checkpoints = {.directory = d}. A std::optional of them would need
/// further braces, and an error in them would not name the field; so they know themselves whether they are given.
#pragma once

namespace gradus::detail {

/// The last field of such options, which nobody sets.
struct Given {
  bool value = true;
};

/// Options of type T as long as nobody gives them.
template <class T> T not_given() {
  T none{};
  none.given.value = false;
  return none;
}

}  // namespace gradus::detail
