/// Components: optional parts of the library, each a shared library of its own that is loaded on first use, so that
/// Gradus links and runs without their dependencies. They offer plain functions, and see nothing of the library.
#pragma once
#include <string>
#include "gradus/base/error.h"

namespace gradus {

struct Component {
  const char* library;  // "gradus_ucx": of libgradus_ucx.so
  const char* entry;    // the function that gives its table
  const char* purpose;  // for messages: "messages by UCX"
  const char* package;  // the package that building it needs
  const char* runtime;  // the package that running it needs
};

/// The address of the component's entry. It stays loaded. Unavailable names the missing package and how to get it.
void* load(const Component& component);

/// The table of functions that the component offers. Unavailable also if it is of another version.
template <class Table> const Table& table_of(const Component& component) {
  const auto entry = reinterpret_cast<const Table* (*)()>(load(component));
  const Table& found = *entry();
  require<Unavailable>(found.version == Table::current, "lib", component.library,
                       ".so is of another version of Gradus (", found.version, ", expected ", Table::current,
                       "): install both from one build");
  return found;
}

/// Where components are looked for: beside the library or program that holds this code, in its folder gradus, and in
/// ../lib.
std::string folder_of_components();

}  // namespace gradus
